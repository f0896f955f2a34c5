// Data that a function which is going to be captured fills from the host: constants, where its
// plain run and its captured run fill the same. A replay would not see other data, so what is new
// in the captured run stays an error.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "weft/base/function_ref.h"
#include "weft/tensor/tensor.h"

namespace weft {

class HostConstants {
 public:
  using Store = std::map<std::string, Tensor>;
  enum class Mode : uint8_t { Record, Find };

  /// While it lives, Tensor::from_bytes() of this thread goes through `store`.
  class Scope {
   public:
    Scope(Context& context, Store& store, Mode mode);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    HostConstants& all_;
    Store* outer_;
    Mode outer_mode_;
    std::thread::id outer_thread_;
  };

  /// The buffer `make` fills, or one that was filled with the same before.
  NodeRef filled(std::span<const std::byte> data, DType dtype, const Dims& shape,
                 FunctionRef<NodeRef()> make);

 private:
  Store* store_of_this_thread();

  std::mutex mutex_;
  Store* store_ = nullptr;
  Mode mode_ = Mode::Record;
  std::thread::id thread_;
};

}  // namespace weft
