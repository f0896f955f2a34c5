// The bodies of derived.def.
#include "weft/base/error.h"
#include "weft/tensor/access.h"

namespace weft {

#define WEFT_ARGS(...) __VA_ARGS__ __VA_OPT__(, )
#define WEFT_DERIVED(name, declared, params, doc, ...)      \
  Tensor Tensor::name(WEFT_ARGS params CallSite at) const { \
    const CallSiteScope site(at);                           \
    const Tensor& x = *this;                                \
    __VA_ARGS__                                             \
  }
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
#undef WEFT_ARGS

}  // namespace weft
