// Sums of coefficient * term, in which the normal form of index arithmetic is made.
#pragma once
#include <algorithm>

#include "weft/base/int128.h"
#include "weft/base/small_vector.h"
#include "weft/graph/graph.h"
#include "weft/graph/infer.h"

namespace weft::affine {

// Past this many terms a sum stays as it is: normal forms are for index expressions, not for long
// unrolled polynomials.
inline constexpr size_t kMaxTerms = 64;
inline constexpr int kMaxSteps = 4 * kMaxTerms;

inline int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
inline int64_t floor_mod(int64_t a, int64_t b) { return a - b * floor_div(a, b); }

/// Coefficients stay below 2^62, so that negating and adding two of them cannot overflow.
inline bool fits(Int128 v) {
  constexpr Int128 kLimit = Int128{1} << 62;
  return v > -kLimit && v < kLimit;
}

/// coefficient * node.
struct AffineTerm {
  NodeRef node;
  int64_t coefficient;
  NodeRef product;  ///< of `node` and a constant, where one was met: as a rule the term itself
};

/// The order of operands: by structural hash; two values of one variable have the same.
inline bool comes_later(NodeRef a, NodeRef b) {
  return a->hash != b->hash ? a->hash > b->hash : a->key > b->key;
}

/// constant + sum of terms; terms sorted by structural hash, no zero coefficients.
struct Sum {
  SmallVector<AffineTerm, 8> terms;
  int64_t constant = 0;
  bool ok = true;  // false after an overflow or too many terms
  int steps = 0;   // bounds the walk over sums that were interned without being normalised

  void add_constant(Int128 v) {
    v += constant;
    if (!fits(v)) ok = false;
    constant = static_cast<int64_t>(v);
  }
  void add_term(NodeRef n, Int128 c, NodeRef product = nullptr) {
    if (!fits(c)) ok = false;
    const AffineTerm* place = std::lower_bound(terms.begin(), terms.end(), n, before);
    const auto at = static_cast<size_t>(place - terms.begin());
    if (at < terms.size() && place->node == n) {
      c += place->coefficient;
      if (!fits(c)) ok = false;
      terms[at].coefficient = static_cast<int64_t>(c);
      if (c == 0) terms.erase(at);
    } else if (c != 0) {
      terms.insert(at, {n, static_cast<int64_t>(c), product});
      if (terms.size() > kMaxTerms) ok = false;
    }
  }
  static bool before(const AffineTerm& t, NodeRef n) { return comes_later(n, t.node); }

  /// Adds scale * n, walking n's own normal form.
  void add(NodeRef n, int64_t scale) {
    while (ok) {
      if (++steps > kMaxSteps) ok = false;
      if (n->op == Op::Const) return add_constant(static_cast<Int128>(n->vmin) * scale);
      if (n->op == Op::Add) {
        add_scaled_term(n->src(1), scale);
        n = n->src(0);
        continue;
      }
      return add_scaled_term(n, scale);
    }
  }
  void add_scaled_term(NodeRef n, int64_t scale) {
    if (n->op == Op::Const) return add_constant(static_cast<Int128>(n->vmin) * scale);
    if (n->op == Op::Add) return add(n, scale);
    if (n->op == Op::Mul && n->src(1)->op == Op::Const)
      return add_term(n->src(0), static_cast<Int128>(n->src(1)->vmin) * scale, n);
    add_term(n, scale);
  }

  Bounds bounds() const {
    Int128 lo = constant, hi = constant;
    for (const AffineTerm& t : terms) {
      const Int128 a = static_cast<Int128>(t.coefficient) * t.node->vmin;
      const Int128 b = static_cast<Int128>(t.coefficient) * t.node->vmax;
      lo += std::min(a, b);
      hi += std::max(a, b);
    }
    auto clamp = [](Int128 v) {
      const Int128 lo64 = INT64_MIN, hi64 = INT64_MAX;
      return static_cast<int64_t>(std::clamp(v, lo64, hi64));
    };
    return {clamp(lo), clamp(hi)};
  }
};

}  // namespace weft::affine
