#include "weft/tensor/known.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "weft/base/context.h"
#include "weft/base/int128.h"
#include "weft/base/thread_pool.h"
#include "weft/device/host_device.h"
#include "weft/run/active_capture.h"
#include "weft/tensor/access.h"
#include "weft/tensor/strides.h"

namespace weft {

namespace {

/// Elements in memory that the host reads: `at` is the first one.
struct Known {
  /// A number that was repeated.
  static Known constant(Value v, std::vector<int64_t> shape) {
    Known out{
        v.dtype(), nullptr, std::move(shape), {}, std::make_unique<std::byte[]>(sizeof(int64_t))};
    v.store(out.own.get());
    out.at = out.own.get();
    out.strides.assign(out.shape.size(), 0);
    return out;
  }

  DType dtype;
  const std::byte* at = nullptr;        // null where there are none
  std::vector<int64_t> shape, strides;  // in bytes
  std::unique_ptr<std::byte[]> own = {};
};

/// What moves of a view, or widens integers, is the same elements.
bool keeps_elements(NodeRef n) {
  if (n->op == Op::Cast) {
    const DType from = n->src(0)->dtype;
    return is_int(from) && is_int(n->dtype) && bits(n->dtype) >= bits(from) &&
           (is_unsigned(from) || !is_unsigned(n->dtype));
  }
  return n->op == Op::Detach || n->op == Op::Contiguous || n->op == Op::Reshape ||
         n->op == Op::Expand || n->op == Op::Permute || n->op == Op::Shrink || n->op == Op::Flip ||
         n->op == Op::Window;
}

bool has_numbers(NodeRef n) {
  for (NodeRef d : n->shape->span())
    if (d->op != Op::Const) return false;
  for (size_t i = 1; i < n->nsrc; ++i)
    if (n->src(i)->op != Op::Const) return false;
  return true;
}

/// Where, in n's source, the element lies that n has at `place`.
std::vector<int64_t> place_in_source(NodeRef n, const std::vector<int64_t>& place) {
  NodeRef x = n->src(0);
  std::vector<int64_t> out(x->rank());
  const auto size = [](NodeRef of, size_t axis) { return of->dim(axis)->vmin; };
  if (n->op == Op::Reshape) {
    int64_t flat = 0;
    for (size_t i = 0; i < place.size(); ++i) flat = flat * size(n, i) + place[i];
    for (size_t i = out.size(); i-- > 0; flat /= size(x, i)) out[i] = flat % size(x, i);
    return out;
  }
  std::copy_n(place.begin(), out.size(), out.begin());
  const size_t axis = n->op == Op::Window ? static_cast<size_t>(n->int_arg(0)) : 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (n->op == Op::Expand && size(x, i) == 1) out[i] = 0;
    if (n->op == Op::Permute) out[static_cast<size_t>(n->int_arg(i))] = place[i];
    if (n->op == Op::Shrink) out[i] = n->src(1 + i)->vmin + n->int_arg(i) * place[i];
  }
  if (n->op == Op::Window) out[axis] = place[axis] * n->int_arg(2) + place.back() * n->int_arg(3);
  if (n->op == Op::Flip)
    for (const int64_t a : n->ints())
      out[static_cast<size_t>(a)] =
          size(x, static_cast<size_t>(a)) - 1 - out[static_cast<size_t>(a)];
  return out;
}

/// x's elements where they lie, if somewhere the host can read them.
std::optional<Known> known(const Tensor& x) {
  const OpScope scope(x, CallSite::here());
  if (active_capture(scope.context)) return std::nullopt;
  NodeRef root = x.node(), memory = root;
  if (x.dims().is_static() && x.numel() == 0) return Known{x.dtype(), nullptr, x.shape(), {}};
  if (NodeRef one = build::without_broadcast(root); one->op == Op::Const && x.dims().is_static())
    return Known::constant(const_value(one), x.shape());
  std::vector<int64_t> place(root->rank(), 0);
  for (; keeps_elements(memory); memory = memory->src(0)) {
    if (!has_numbers(memory) || !has_numbers(memory->src(0))) return std::nullopt;
    place = place_in_source(memory, place);
  }
  if (memory->op != Op::Buffer || !has_numbers(memory) || !x.dims().is_static())
    return std::nullopt;
  const auto buffer = scope.context.get<BufferTable>().find(buffer_id(memory));
  if (!buffer || !dynamic_cast<HostDevice*>(&buffer->device())) return std::nullopt;
  const auto strides = strides_of(scope.g, root);
  if (!strides) return std::nullopt;
  Known out{memory->dtype, static_cast<const std::byte*>(buffer->data()), x.shape(), {}};
  for (NodeRef s : *strides) out.strides.push_back(s->vmin);
  int64_t flat = 0;
  for (size_t i = 0; i < place.size(); ++i) flat = flat * memory->dim(i)->vmin + place[i];
  out.at += flat * bits(memory->dtype) / 8;
  return out;
}

/// The same without axes along which elements are repeated, each of them once, and with rows that
/// lie one behind the other as one.
std::optional<Known> known_once(const Tensor& x) {
  std::optional<Known> k = known(x);
  if (!k || !k->at) return k;
  size_t kept = 0;
  for (size_t i = 0; i < k->shape.size(); ++i) {
    const int64_t size = k->shape[i], stride = k->strides[i];
    if (stride == 0) continue;
    if (kept > 0 && k->strides[kept - 1] == size * stride) {
      k->shape[kept - 1] *= size, k->strides[kept - 1] = stride;
      continue;
    }
    k->shape[kept] = size, k->strides[kept++] = stride;
  }
  k->shape.resize(kept), k->strides.resize(kept);
  return k;
}

/// Calls `take` with where each row along the last axis begins.
void each_row(const Known& k,
              FunctionRef<void(const std::byte* row, int64_t count, int64_t step)> take) {
  if (!k.at) return;
  const size_t rank = k.shape.size();
  const int64_t count = rank ? k.shape.back() : 1, step = rank ? k.strides.back() : 0;
  std::vector<int64_t> place(rank, 0);
  const std::byte* at = k.at;
  for (;;) {
    take(at, count, step);
    size_t axis = rank ? rank - 1 : 0;
    while (axis > 0) {
      --axis;
      at += k.strides[axis];
      if (++place[axis] < k.shape[axis]) break;
      at -= k.strides[axis] * k.shape[axis];
      place[axis] = 0;
      if (axis == 0) return;
    }
    if (rank < 2) return;
  }
}

struct Wanted {
  int64_t low, high;  // low <= 0 <= high, which is none of them
  std::optional<int64_t> exempt;
};

constexpr int64_t kBlock = 1024;  // integers

/// Whether all of a block are in [low, last], low <= 0 <= last + 1; maybe false where some are far
/// from both.
template <class T>
bool surely_inside(const std::byte* at, T low, T last) {
  const auto loaded = [at](int64_t i) {
    T x;
    std::memcpy(&x, at + i * static_cast<int64_t>(sizeof x), sizeof x);
    return x;
  };
  if constexpr (sizeof(T) == 8 && std::numeric_limits<T>::is_signed) {
    // Signs of differences: vectors of these can be compared by more processors than numbers can.
    uint64_t signs = 0;
    for (int64_t i = 0; i < kBlock; ++i)
      signs |= (static_cast<uint64_t>(loaded(i)) - static_cast<uint64_t>(low)) |
               (static_cast<uint64_t>(last) - static_cast<uint64_t>(loaded(i)));
    return signs >> 63 == 0;
  } else {
    T bad = 0;
    for (int64_t i = 0; i < kBlock; ++i)
      bad |= static_cast<T>(loaded(i) < low) | static_cast<T>(loaded(i) > last);
    return bad == 0;
  }
}

/// Where the first of some integers is that is not wanted, or `count`. Of blocks that lie together
/// it is asked first whether all are, which compilers do with vectors.
template <class T>
int64_t first_outside(const std::byte* at, int64_t count, int64_t step, const Wanted& wanted) {
  using Limits = std::numeric_limits<T>;
  if (wanted.high <= 0 && !Limits::is_signed) return 0;
  const auto low = static_cast<T>(std::max<Int128>(wanted.low, Limits::min()));
  const auto last = static_cast<T>(std::min<Int128>(Int128{wanted.high} - 1, Limits::max()));
  for (int64_t i = 0; i < count;) {
    if (step == sizeof(T) && i + kBlock <= count && surely_inside(at + i * step, low, last)) {
      i += kBlock;
      continue;
    }
    for (const int64_t end = std::min(count, i + kBlock); i < end; ++i) {
      T v;
      std::memcpy(&v, at + i * step, sizeof v);
      if ((v < low || v > last) && (!wanted.exempt || *wanted.exempt != Int128{v})) return i;
    }
  }
  return count;
}

int64_t first_outside(DType dtype, const std::byte* at, int64_t count, int64_t step,
                      const Wanted& wanted) {
  switch (dtype) {
    case DType::I8: return first_outside<int8_t>(at, count, step, wanted);
    case DType::I16: return first_outside<int16_t>(at, count, step, wanted);
    case DType::I32: return first_outside<int32_t>(at, count, step, wanted);
    case DType::I64: return first_outside<int64_t>(at, count, step, wanted);
    case DType::U16: return first_outside<uint16_t>(at, count, step, wanted);
    case DType::U32: return first_outside<uint32_t>(at, count, step, wanted);
    case DType::U64: return first_outside<uint64_t>(at, count, step, wanted);
    default: return first_outside<uint8_t>(at, count, step, wanted);  // and bool
  }
}

/// The same by all threads, where there are many.
int64_t first_outside(ThreadPool& pool, DType dtype, const std::byte* at, int64_t count,
                      int64_t step, const Wanted& wanted) {
  constexpr int64_t kPiece = 16 * kBlock;
  constexpr double kElement = 0.2;  // nanoseconds
  if (count <= kPiece) return first_outside(dtype, at, count, step, wanted);
  std::atomic<int64_t> first = count;
  const auto search = [&](int64_t begin, int64_t end, int) {
    const int64_t from = begin * kPiece, length = std::min(count, end * kPiece) - from;
    const int64_t found = first_outside(dtype, at + from * step, length, step, wanted);
    int64_t earliest = first.load();
    while (found < length && from + found < earliest &&
           !first.compare_exchange_weak(earliest, from + found)) {}
  };
  pool.parallel_for((count + kPiece - 1) / kPiece, search, {.item_ns = kPiece * kElement});
  return first.load();
}

using Bounds = std::pair<int64_t, int64_t>;

/// `bounds` with some more integers inside. Blocks of a known size that lie together are what
/// compilers do with vectors.
template <class T>
Bounds widened(Bounds bounds, const std::byte* at, int64_t count, int64_t step) {
  T least = std::numeric_limits<T>::max(), greatest = std::numeric_limits<T>::min();
  int64_t i = 0;
  for (; step == sizeof(T) && i + kBlock <= count; i += kBlock) {
    T v[kBlock];
    std::memcpy(v, at + i * step, sizeof v);
    for (const T x : v) least = x < least ? x : least;
    for (const T x : v) greatest = x > greatest ? x : greatest;
  }
  for (; i < count; ++i) {
    T v;
    std::memcpy(&v, at + i * step, sizeof v);
    least = std::min(least, v), greatest = std::max(greatest, v);
  }
  return {std::min<int64_t>(bounds.first, least), std::max<int64_t>(bounds.second, greatest)};
}

Bounds widened(Bounds bounds, DType dtype, const std::byte* at, int64_t count, int64_t step) {
  switch (dtype) {
    case DType::I8: return widened<int8_t>(bounds, at, count, step);
    case DType::I16: return widened<int16_t>(bounds, at, count, step);
    case DType::I32: return widened<int32_t>(bounds, at, count, step);
    case DType::I64: return widened<int64_t>(bounds, at, count, step);
    case DType::U16: return widened<uint16_t>(bounds, at, count, step);
    case DType::U32: return widened<uint32_t>(bounds, at, count, step);
    default: return widened<uint8_t>(bounds, at, count, step);  // and bool
  }
}

}  // namespace

std::optional<Bounds> known_bounds(const Tensor& x) {
  // What is made of them depends on them: the call that rehearses a capture goes the way of the
  // capture, which does not look.
  if (storage_listener(x.context())) return std::nullopt;
  if (is_float(x.dtype()) || x.dtype() == DType::U64) return std::nullopt;
  const auto k = known_once(x);
  if (!k || !k->at || x.numel() == 0) return std::nullopt;
  Bounds bounds{INT64_MAX, INT64_MIN};
  each_row(*k, [&](const std::byte* at, int64_t count, int64_t step) {
    bounds = widened(bounds, k->dtype, at, count, step);
  });
  return bounds;
}

bool is_known(const Tensor& x) { return known(x).has_value(); }

std::optional<std::string> known_outside(const Tensor& x, int64_t low, int64_t high,
                                         std::optional<int64_t> exempt) {
  const auto k = known_once(x);
  std::optional<std::string> found;
  if (!k) return found;
  ThreadPool& pool = x.context().thread_pool();
  each_row(*k, [&](const std::byte* at, int64_t count, int64_t step) {
    if (found) return;
    const int64_t i = first_outside(pool, k->dtype, at, count, step, {low, high, exempt});
    if (i < count) found = Value::load(k->dtype, at + i * step).text();
  });
  return found;
}

bool known_inside(const Tensor& x, int64_t n) {
  return is_int(x.dtype()) && is_known(x) && !known_outside(x, 0, n);
}

std::optional<int64_t> known_least_positive(const Tensor& x, int64_t enough) {
  const auto k = known(x);
  if (!k) return std::nullopt;
  int64_t least = enough;
  each_row(*k, [&](const std::byte* at, int64_t count, int64_t step) {
    int64_t positive = 0;
    for (int64_t i = 0; i < count && positive < enough; ++i, at += step)
      positive += Value::load(k->dtype, at).as_double() > 0;
    least = std::min(least, positive);
  });
  return least;
}

void require_known_inside(const char* tag, const Tensor& positions, int64_t axis, const Tensor& x) {
  const Dim n = x.dim(axis);
  if (!n.is_static() || !is_int(positions.dtype())) return;
  if (const auto found = known_outside(positions, -n.value(), n.value()))
    fail_index(tag,
               "position {} is out of bounds for axis {} of shape {}: it must be from {} to {}",
               *found, axis, x.dims().text(), -n.value(), n.value() - 1);
}

}  // namespace weft
