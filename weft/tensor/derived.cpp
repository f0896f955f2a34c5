// The bodies of derived.def.
#include <cmath>

#include "weft/base/error.h"
#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"
#include "weft/tensor/tracing.h"

namespace weft {

namespace {

/// What a smooth function of x runs on, and its result in x's dtype.
Tensor widened(const Tensor& x) { return x.cast(sum_dtype(float_or_default(x.dtype()))); }
Tensor narrowed(const Tensor& y, const Tensor& x) {
  return is_float(x.dtype()) ? y.cast(x.dtype()) : y;
}

}  // namespace

#define WEFT_ARGS(...) __VA_ARGS__ __VA_OPT__(, )
#define WEFT_DERIVED(name, declared, params, doc, ...)      \
  Tensor Tensor::name(WEFT_ARGS params CallSite at) const { \
    const CallSiteScope site(at);                           \
    const Tensor& x = *this;                                \
    __VA_ARGS__                                             \
  }
// Whether a list of parameters is empty.
#define WEFT_NONE(...) true __VA_OPT__(&&false)
#define WEFT_SMOOTH(name, declared, params, doc, ...)                                \
  Tensor Tensor::name(WEFT_ARGS params CallSite at) const {                          \
    const CallSiteScope site(at);                                                    \
    const auto body = [&](const Tensors& in) {                                       \
      const Tensor x = widened(in[0]);                                               \
      return Tensors{narrowed([&]() -> Tensor { __VA_ARGS__ }(), in[0])};            \
    };                                                                               \
    return (WEFT_NONE params ? called(#name, {}, {*this}, body) : body({*this}))[0]; \
  }
#include "weft/tensor/derived.def"
#undef WEFT_SMOOTH
#undef WEFT_NONE
#undef WEFT_DERIVED
#undef WEFT_ARGS

}  // namespace weft
