// Unique: distinct elements, or slices along an axis, on the host.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "weft/onnx/host.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {
namespace {

// Elements as integers in the same order: equal where elements are, the zeros too; NaN last.
std::vector<uint64_t> order_keys(const HostArray& a) {
  std::vector<uint64_t> keys(static_cast<size_t>(a.numel()));
  constexpr uint64_t kSign = uint64_t{1} << 63;
  for (size_t i = 0; i < keys.size(); ++i) {
    const weft::Value x = element(a, static_cast<int64_t>(i));
    if (!is_float(a.dtype)) {
      keys[i] = is_signed_int(a.dtype) ? x.as_uint() ^ kSign : x.as_uint();
      continue;
    }
    const double number = x.as_double() + 0.0;  // -0 is 0
    const auto bits = std::bit_cast<uint64_t>(number);
    keys[i] = x.is_nan() ? ~uint64_t{0} : (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  return keys;
}

std::vector<uint64_t> order_keys(const std::vector<std::string>& texts) {
  std::map<std::string_view, uint64_t> ranks;
  for (const std::string& text : texts) ranks.emplace(text, 0);
  uint64_t rank = 0;
  for (auto& [text, at] : ranks) at = rank++;
  std::vector<uint64_t> keys;
  for (const std::string& text : texts) keys.push_back(ranks[text]);
  return keys;
}

struct Distinct {
  std::vector<int64_t> first, inverse, counts;
};

// Of slices (outer, size, inner) along the middle axis.
Distinct distinct(const std::vector<uint64_t>& keys, int64_t outer, int64_t size, int64_t inner,
                  bool sorted) {
  const auto compare = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < outer; ++o) {
      const auto x = keys.begin() + (o * size + a) * inner,
                 y = keys.begin() + (o * size + b) * inner;
      const auto order = std::lexicographical_compare_three_way(x, x + inner, y, y + inner);
      if (order != 0) return order < 0 ? -1 : 1;
    }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int by_keys = compare(a, b);
    return by_keys != 0 ? by_keys < 0 : a < b;
  });
  std::vector<std::pair<int64_t, int64_t>> groups;  // begin and end in `order`
  for (int64_t i = 0; i < size; ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) groups.emplace_back(i, i);
    groups.back().second = i + 1;
  }
  if (!sorted)
    std::sort(groups.begin(), groups.end(),
              [&](const auto& a, const auto& b) { return order[a.first] < order[b.first]; });
  Distinct found{{}, std::vector<int64_t>(static_cast<size_t>(size)), {}};
  for (const auto& [begin, end] : groups) {
    for (int64_t i = begin; i < end; ++i)
      found.inverse[order[i]] = static_cast<int64_t>(found.first.size());
    found.first.push_back(order[begin]);
    found.counts.push_back(end - begin);
  }
  return found;
}

// Of x, viewed as (outer, size, inner), the slices at `places` of the middle axis.
template <class T>
std::vector<T> slices_at(std::span<const T> x, const std::vector<int64_t>& places, int64_t outer,
                         int64_t size, int64_t inner) {
  std::vector<T> chosen;
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t at : places) {
      const auto from =
          x.subspan(static_cast<size_t>((o * size + at) * inner), static_cast<size_t>(inner));
      chosen.insert(chosen.end(), from.begin(), from.end());
    }
  return chosen;
}

}  // namespace

namespace {

Values unique_of(const NodeCall& call, bool sorted) {
  const Value& x = call.input(0);
  const bool strings = x.kind() == Value::Kind::Strings, flat = !call.has("axis");
  const HostArray data = strings ? HostArray() : call.array(0);
  const std::vector<int64_t> dims = strings ? static_sizes(x.dims()) : data.shape;
  int64_t axis = 0, outer = 1, inner = 1;
  if (!flat) axis = call.axis(call.integer("axis"), dims.size());
  std::vector<uint64_t> keys = strings ? order_keys(x.texts()) : order_keys(data);
  for (size_t d = 0; !flat && d < dims.size(); ++d)
    (static_cast<int64_t>(d) < axis ? outer : inner) *=
        static_cast<int64_t>(d) == axis ? 1 : dims[d];
  const int64_t size = flat ? static_cast<int64_t>(keys.size()) : dims[static_cast<size_t>(axis)];
  const Distinct found = distinct(keys, outer, size, inner, sorted);

  const auto count = static_cast<int64_t>(found.first.size());
  std::vector<int64_t> shape = flat ? std::vector<int64_t>{count} : dims;
  if (!flat) shape[static_cast<size_t>(axis)] = count;
  Value values;
  if (strings) {
    values = Value::strings(
        slices_at(std::span<const std::string>(x.texts()), found.first, outer, size, inner), shape);
  } else {
    const int64_t bytes = bytes_for(data.dtype, 1);
    values = Value(
        Value(HostArray::owned(data.dtype, shape,
                               slices_at(data.bytes, found.first, outer, size, inner * bytes)))
            .tensor(),
        x.type());
  }
  return {values, host_value(found.first, {count}), host_value(found.inverse, {size}),
          host_value(found.counts, {count})};
}

}  // namespace

Values unique(const NodeCall& call) { return unique_of(call, call.integer("sorted", 1) != 0); }

// com.microsoft's: in order of appearance, without where each was first.
Values unique_in_order(const NodeCall& call) {
  Values all = unique_of(call, false);
  all.erase(all.begin() + 1);
  return all;
}

}  // namespace weft::onnx
