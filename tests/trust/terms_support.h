// Values of kernels over unknown inputs, as terms of Z3.
#pragma once
#include <z3++.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/dtype/value.h"
#include "weft/graph/op.h"

namespace weft::test {

/// Thrown where the theory, or an executor, has no word for something.
struct Unsupported {
  std::string what;
};

/// A number where it is one, else a term: a Z3 bool for bool, else bits (64 of an index).
struct Term {
  Value value = {};
  std::optional<z3::expr> unknown = {};
  DType dtype = value.dtype();

  bool is_number() const { return !unknown; }
};

using TermMemory = std::vector<std::vector<Term>>;  // by param slot

/// What ops do to terms. Numbers are computed by eval/, integers and bools are bit-vectors, and so
/// are comparisons, signs and choices of floats. Float arithmetic, and what eval/ calls
/// approximate, are functions of which nothing is known but that equal operands give equal results,
/// a + b = b + a, a * b = b * a, a + -0 = a and a * 1 = a: where that does not suffice, terms of
/// equal value differ.
class TermAlgebra {
 public:
  explicit TermAlgebra(z3::context& c) : c_(c) {}

  static Term number(Value v) { return {v}; }
  static Term index(int64_t v) { return {Value::index(v)}; }
  Term unknown(const std::string& name, DType dtype);

  Term apply(Op op, DType dtype, std::span<const Term> operands);
  Term fold(Fold kind, const Term& a, const Term& b);
  Term where(const Term& condition, const Term& a, const Term& b);
  Term both(const Term& a, const Term& b);  ///< and
  /// An element of the memory, 0 outside of it; and what a store there leaves.
  Term read(const std::vector<Term>& memory, const Term& at);
  void write(std::vector<Term>& memory, const Term& at, const Term& value, const Term& condition);
  /// Elements that lie one after the other as one value, the first in its lowest bits.
  Term word(DType dtype, std::span<const Term> elements);

  /// Bits, or a Z3 bool.
  z3::expr expression(const Term& t);
  /// Not equal, where every NaN is like any other.
  z3::expr differ(const Term& a, const Term& b);
  /// Some operation was a function of which nothing is known.
  bool guessed() const { return guessed_; }

 private:
  z3::expr bits(uint64_t v, DType dtype);
  z3::expr is_nan(const z3::expr& x, DType dtype);
  z3::expr is_zero(const z3::expr& x);
  z3::expr float_less(const z3::expr& a, const z3::expr& b, DType dtype, bool or_equal);
  z3::expr float_equal(const z3::expr& a, const z3::expr& b, DType dtype);
  z3::expr compare(Op op, const z3::expr& a, const z3::expr& b, DType dtype);
  z3::expr of_bools(Op op, const std::vector<z3::expr>& x);
  z3::expr of_integers(Op op, const std::vector<z3::expr>& x, DType dtype);
  z3::expr of_floats(Op op, const std::vector<z3::expr>& x, DType dtype);
  z3::expr some_function(const std::string& name, const std::vector<z3::expr>& x, unsigned width);
  z3::expr cast(const z3::expr& x, DType from, DType to);
  z3::expr to_index(const Term& x, const Term& size);
  Term truth(const z3::expr& e) { return {{}, e, DType::Bool}; }

  z3::context& c_;
  bool guessed_ = false;
};

}  // namespace weft::test
