// Dim, Dims, Axes, Ints, Variable: what a shape is made of, and how calls spell axes and sizes.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/call_site.h"
#include "weft/base/small_vector.h"
#include "weft/graph/node.h"

namespace weft {

/// Keeps one node of the context's tensor graph, and all it reaches, alive.
class RootedNode {
 public:
  RootedNode() = default;
  explicit RootedNode(NodeRef n) : node_(n) { retain(); }
  RootedNode(const RootedNode& other) : node_(other.node_) { retain(); }
  RootedNode(RootedNode&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  RootedNode& operator=(RootedNode other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~RootedNode() {
    if (node_ != nullptr) node_->roots.fetch_sub(1, std::memory_order_release);
  }
  NodeRef get() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  void retain() {
    if (node_ != nullptr) node_->roots.fetch_add(1, std::memory_order_relaxed);
  }
  NodeRef node_ = nullptr;
};

/// One extent or offset: a number, or an expression over Variables. Arithmetic gives the normal
/// form, so two Dims that are equal for a simple reason compare equal.
class Dim {
 public:
  Dim() = default;
  template <std::integral T>
  Dim(T value) : value_(static_cast<int64_t>(value)) {}  // NOLINT: implicit by purpose
  /// An index expression of the current context's graph.
  explicit Dim(NodeRef n);

  bool is_static() const { return !node_; }
  int64_t value() const;  ///< Error when symbolic
  int64_t min() const { return node_ ? node_.get()->vmin : value_; }
  int64_t max() const { return node_ ? node_.get()->vmax : value_; }
  NodeRef node() const;  ///< in the current context's graph
  std::string text() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim operator/(const Dim& a, const Dim& b);  ///< floor division
  friend Dim operator%(const Dim& a, const Dim& b);
  /// Provably equal.
  friend bool operator==(const Dim& a, const Dim& b) {
    return a.node_.get() == b.node_.get() && a.value_ == b.value_;
  }

 private:
  int64_t value_ = 0;  // 0 when symbolic
  RootedNode node_;
};

Dim max(const Dim& a, const Dim& b);  ///< the larger, an expression where that is not known
Dim min(const Dim& a, const Dim& b);

/// A named size that is chosen per run: Variable n("n", 1, 1024); x.shrink({{0, n.bind(17)}}).
/// Kernels are compiled once for the whole range [min, max].
class Variable {
 public:
  /// min <= max, of a size 0 <= min; every value is a multiple of `multiple`, which kernels may
  /// rely on.
  Variable(std::string_view name, int64_t min, int64_t max, int64_t multiple = 1,
           CallSite at = CallSite::here());
  explicit Variable(NodeRef n) : node_(n) {}  ///< one that a Bind holds
  /// This variable with its value; Error outside the range.
  Dim bind(int64_t value, CallSite at = CallSite::here()) const;
  Dim unbound() const { return Dim(node_.get()); }  ///< without a value: realizing it is an Error

 private:
  RootedNode node_;
};

/// A shape or a list of sizes: {2, 3}, a vector of numbers, a vector of Dims.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<Dim> list) : dims_(list) {}
  Dims(std::vector<Dim> dims) : dims_(std::move(dims)) {}  // NOLINT: implicit by purpose
  Dims(std::span<const int64_t> sizes) : dims_(sizes.begin(), sizes.end()) {}     // NOLINT
  Dims(const std::vector<int64_t>& sizes) : dims_(sizes.begin(), sizes.end()) {}  // NOLINT

  size_t size() const { return dims_.size(); }
  bool empty() const { return dims_.empty(); }
  Dim& operator[](size_t i) { return dims_[i]; }
  const Dim& operator[](size_t i) const { return dims_[i]; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  auto begin() { return dims_.begin(); }
  auto end() { return dims_.end(); }
  void push_back(Dim d) { dims_.push_back(std::move(d)); }
  void insert(size_t at, Dim d) {
    dims_.insert(dims_.begin() + static_cast<std::ptrdiff_t>(at), std::move(d));
  }
  void erase(size_t at) { dims_.erase(dims_.begin() + static_cast<std::ptrdiff_t>(at)); }
  Dim& back() { return dims_.back(); }
  const Dim& back() const { return dims_.back(); }

  Dim product() const;       ///< the number of elements; 1 for ()
  bool is_static() const;    ///< all sizes are numbers
  std::string text() const;  ///< "(2, 3)", "(n, 4)", "()"
  friend bool operator==(const Dims& a, const Dims& b) { return a.dims_ == b.dims_; }

 private:
  std::vector<Dim> dims_;
};

/// A number or a list of numbers: strides, kernel sizes, paddings.
class Ints : public SmallVector<int64_t, 4> {
 public:
  Ints() = default;
  template <std::integral T>
  Ints(T one) : SmallVector{static_cast<int64_t>(one)} {}  // NOLINT: implicit by purpose
  Ints(std::initializer_list<int64_t> list) : SmallVector(list) {}
  Ints(const std::vector<int64_t>& list)  // NOLINT
      : SmallVector(std::span<const int64_t>(list)) {}
  static Ints filled(size_t count, int64_t value = 0) {
    Ints all;
    all.resize(count, value);
    return all;
  }
};

/// Axes of a reduction; none given means all. Negative axes count from the last.
using Axes = Ints;

using DimPair = std::pair<Dim, Dim>;

}  // namespace weft
