// Constant tables that functions need as data: weights of a resize, roots of unity, step numbers.
#pragma once

#include <mutex>
#include <unordered_map>

#include "weft/base/function_ref.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// A slot of the Context: tables made once and kept, so that they are the same memory in every call
/// and the replay of a captured function finds them.
class Tables {
 public:
  explicit Tables(Context&) {}
  static Tables& of(Context& context);
  /// Never to be written to: read by copying operations only. `key` says all about it.
  Tensor get(const std::string& key, FunctionRef<Tensor()> make);

 private:
  // Tables are small; a program that makes this many, by ever other sizes, starts anew.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  std::mutex mutex_;
  std::unordered_map<std::string, Tensor> tables_;  // by what is in them
  size_t bytes_ = 0;
};

/// An Error where a function would compute a table of more elements than the memory cap has room
/// for, or than 2^26.
void require_table(const char* tag, int64_t count);

/// The table with these elements, on like's device.
template <class T>
Tensor constant_table(const std::vector<T>& data, const Dims& shape, const Tensor& like);
/// The table of element(0), element(1), ... in like's dtype, f32 or f64, and on its device. They
/// are computed once for each `what`, shape and dtype.
Tensor known_table(const std::string& what, int64_t count, const Dims& shape, const Tensor& like,
                   FunctionRef<double(int64_t)> element);

}  // namespace weft
