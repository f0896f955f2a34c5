// Index: what may stand inside t[{...}] - numbers, Slice, kNewAxis, kEllipsis, index tensors.
#pragma once

#include <concepts>
#include <optional>

#include "weft/tensor/cell_ref.h"
#include "weft/tensor/dim.h"

namespace weft {

class Tensor;

/// start:stop:step as in Python: missing ends mean the whole axis, negative numbers count from the
/// end, out-of-range ends are clamped. Slice(2) is [:2], Slice(1, 5), Slice(5, 0, -1), Slice() is
/// [:].
struct Slice {
  std::optional<Dim> start, stop;
  int64_t step = 1;

  Slice() = default;
  explicit Slice(Dim end) : stop(std::move(end)) {}
  Slice(std::optional<Dim> from, std::optional<Dim> to, int64_t by = 1)
      : start(std::move(from)), stop(std::move(to)), step(by) {}
};

struct NewAxis {};
struct Ellipsis {};
inline constexpr NewAxis kNewAxis;
inline constexpr Ellipsis kEllipsis;

class Index {
 public:
  enum class Kind : uint8_t { At, Slice, NewAxis, Ellipsis, Tensor };

  template <std::integral T>
  Index(T at, CallSite site = CallSite::here())  // NOLINT: all implicit by purpose
      : kind_(Kind::At), site_(site), at_(at) {}
  Index(Dim at, CallSite site = CallSite::here())  // NOLINT
      : kind_(Kind::At), site_(site), at_(std::move(at)) {}
  Index(Slice slice, CallSite site = CallSite::here())  // NOLINT
      : kind_(Kind::Slice), site_(site), slice_(std::move(slice)) {}
  Index(NewAxis, CallSite site = CallSite::here())  // NOLINT
      : kind_(Kind::NewAxis), site_(site) {}
  Index(Ellipsis, CallSite site = CallSite::here())  // NOLINT
      : kind_(Kind::Ellipsis), site_(site) {}
  /// Elements by position; any integer dtype; negative positions count from the end. A position
  /// outside the axis is an Error where its value is known when the graph is built, and reads 0 and
  /// writes nothing where it is computed later.
  /// Or a bool mask, of the sizes of the axes that it selects from: reading first looks how many
  /// are true (not within a jit), writing does not.
  Index(const Tensor& positions, CallSite site = CallSite::here());  // NOLINT

  Kind kind() const { return kind_; }
  const Dim& at() const { return at_; }
  const Slice& slice() const { return slice_; }
  Tensor tensor() const;
  CallSite site() const { return site_; }

 private:
  Kind kind_;
  CallSite site_;
  Dim at_;
  Slice slice_;
  CellRef cell_;  // with chain_: the index tensor
  RootedNode chain_;
};

}  // namespace weft
