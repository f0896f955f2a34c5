// Sizes that a model names instead of giving them, as Variables: one capture serves all of them.
#pragma once

#include <string>
#include <vector>

#include "weft/onnx/value.h"

namespace weft::onnx {

/// Decides in each call of a model whether its named sizes are numbers or Variables. A model of
/// text (whole numbers come in, of named sizes) has lengths of all kinds: Variables from the first
/// call on. Any other has numbers until a call brings another size, since images come in one. Sizes
/// that come many times in a row are numbers: captured for them alone, a model is somewhat faster.
class VaryingSizes {
 public:
  explicit VaryingSizes(const Graph& graph);

  /// Takes the sizes of the next call. Whether they should be Variables.
  bool next(const Values& inputs);
  /// The inputs, in the same memory, with Variables in the place of sizes; after next() was true.
  Values bound(const Values& inputs) const;
  /// How far the Variables reach: a capture is of a range.
  std::string ranges() const;
  /// The model cannot be captured with Variables.
  void give_up() { possible_ = false; }

 private:
  struct Place {
    size_t input, axis, size;
  };
  struct Size {
    std::string name;
    int64_t longest;
  };
  bool read(const Values& inputs, std::vector<int64_t>& values) const;
  void reach(const std::vector<int64_t>& values);

  std::vector<Place> places_;
  std::vector<Size> sizes_;
  std::vector<int64_t> last_;
  int64_t in_a_row_ = 0;
  bool vary_ = false, possible_ = true;
};

/// Outputs with numbers for sizes.
Values with_numbers(Values outputs);

}  // namespace weft::onnx
