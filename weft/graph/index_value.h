// Sizes as numbers: index expressions over Variables and Binds, evaluated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// An index expression made ready to be evaluated often: a short list of instructions over the
/// values of variables, given by position.
class IndexProgram {
 public:
  IndexProgram() = default;  ///< the constant 0
  explicit IndexProgram(int64_t value) : constant_(value) {}
  /// `variables`: the Variables `n` may hold (by name; they may be of another Graph); another one
  /// is an InternalError. A Bind stands for its value.
  IndexProgram(NodeRef n, std::span<const NodeRef> variables);

  /// The same over other positions: variable i becomes variable positions[i].
  IndexProgram renumbered(std::span<const int> positions) const;

  bool is_constant() const { return code_.empty(); }
  int64_t operator()(std::span<const int64_t> values) const {
    return code_.empty() ? constant_ : evaluate(values);
  }

 private:
  struct Instruction {
    Op op;
    DType dtype;
    uint32_t src[3];    // earlier instructions
    int64_t immediate;  // Const: bits; Variable: position
  };
  int64_t evaluate(std::span<const int64_t> values) const;

  int64_t constant_ = 0;
  std::vector<Instruction> code_;
};

/// Whether no Variable of an expression is without a value.
bool is_bound(NodeRef index);
/// An expression over constants and Binds as a number; an Error naming a Variable without a value.
int64_t bound_value(NodeRef index);
/// The product of such expressions; an Error when it does not fit.
int64_t bound_numel(std::span<const NodeRef> dims);

}  // namespace weft
