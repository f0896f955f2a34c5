// Data that a function which is going to be captured fills from the host: constants, where its
// plain run and its captured run fill the same. A replay would not see other data, so what is new
// in the captured run stays an error.
#pragma once

#include <map>
#include <span>
#include <string>

#include "weft/base/function_ref.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// While it lives, Tensor::from_bytes() of this thread goes through `store`. Scopes nest; the
/// innermost counts, those of other threads are their own.
class HostConstantsScope {
 public:
  using Store = std::map<std::string, Tensor>;
  enum class Mode : uint8_t { Record, Find };

  HostConstantsScope(Store& store, Mode mode);
  ~HostConstantsScope();
  HostConstantsScope(const HostConstantsScope&) = delete;
  HostConstantsScope& operator=(const HostConstantsScope&) = delete;

  static HostConstantsScope* innermost();  ///< of this thread; null where there is none

  /// The buffer `make` fills, or one that was filled with the same before.
  NodeRef filled(std::span<const std::byte> data, DType dtype, const Dims& shape,
                 FunctionRef<NodeRef()> make);

 private:
  Context& context_;  // data for another is its own matter
  Store& store_;
  Mode mode_;
  HostConstantsScope* outer_;
};

}  // namespace weft
