// Elementwise ops on every value of the 8- and 16-bit dtypes (every pair of values of the 8-bit
// ones, the special values of the 16-bit ones with a thousand others each), on every back end,
// against the oracle: NaN, infinities, -0.0, overflow, division by zero, shifts beyond the width,
// all casts.
#include <cmath>
#include <numeric>

#include "tests/support/device_here.h"
#include "tests/tensor/tensor_test.h"
#include "weft/base/format.h"
#include "weft/device/device.h"
#include "weft/eval/evaluate.h"
#include "weft/graph/verify.h"
#include "weft/tensor/access.h"

namespace weft {
namespace {

std::vector<DType> narrow_dtypes() {
  std::vector<DType> all;
  for (size_t id = 0; id < kDTypeCount; ++id)
    if (const auto d = dtype_from_id(static_cast<uint8_t>(id)); d && is_data(*d) && bits(*d) <= 16)
      all.push_back(*d);
  return all;
}

using Patterns = std::vector<uint32_t>;

int64_t patterns_of(DType d) { return is_bool(d) ? 2 : int64_t{1} << bits(d); }

/// Zeros, ones, the ends, subnormals, infinities, NaNs: as bits, whatever the dtype makes of them.
Patterns special_patterns() {
  Patterns out;
  for (const uint32_t high : {0x0000u, 0x8000u})
    for (const uint32_t low : {0x0000u, 0x0001u, 0x0002u, 0x0003u, 0x000fu, 0x0010u, 0x03ffu,
                               0x0400u, 0x007fu, 0x0080u, 0x3c00u, 0x3f80u, 0x4000u, 0x7bffu,
                               0x7c00u, 0x7c01u, 0x7e00u, 0x7f7fu, 0x7f80u, 0x7fc0u, 0x7fffu})
      out.push_back(high | low);
  return out;
}

Tensor tensor_of(DType d, const Patterns& patterns) {
  const int64_t width = bits(d) / 8;
  std::vector<std::byte> bytes(patterns.size() * static_cast<size_t>(width));
  for (size_t i = 0; i < patterns.size(); ++i)
    std::memcpy(&bytes[i * static_cast<size_t>(width)], &patterns[i], static_cast<size_t>(width));
  return Tensor::from_bytes(bytes, d, {static_cast<int64_t>(patterns.size())});
}

constexpr int64_t kStride = 61;

/// What one op is given: `arity` tensors of equal length.
std::vector<Tensor> operands(DType d, int arity) {
  const int64_t count = patterns_of(d);
  std::vector<Patterns> columns(static_cast<size_t>(arity));
  const auto add = [&](uint32_t a, uint32_t b) {
    columns[0].push_back(a);
    if (arity > 1) columns[1].push_back(b);
  };
  if (arity == 1) {
    for (int64_t i = 0; i < count; ++i) add(static_cast<uint32_t>(i), 0);
  } else if (count <= 256) {
    for (int64_t i = 0; i < count * count; ++i)
      add(static_cast<uint32_t>(i / count), static_cast<uint32_t>(i % count));
  } else {
    for (const uint32_t s : special_patterns())
      for (int64_t i = s % kStride; i < count; i += kStride) {
        add(s, static_cast<uint32_t>(i));
        add(static_cast<uint32_t>(i), s);
      }
  }
  std::vector<Tensor> out;
  for (const Patterns& p : columns) out.push_back(tensor_of(d, p));
  return out;
}

struct Case {
  std::string name;
  Op op;
  Tensor result;
};

/// The ops of this arity that take the dtype, and every cast.
std::vector<Case> cases_of(DType d, const std::vector<Tensor>& x) {
  const OpScope scope(x[0], CallSite::here());
  std::vector<NodeRef> src;
  for (const Tensor& t : x) src.push_back(t.node());
  std::vector<Case> cases;
  const auto add = [&](Op op, DType to) {
    const NodeSpec spec{op, to, src, {}, {}, 1};
    if (node_problem(spec, static_cast<uint8_t>(Dialect::Tensor))) return;
    cases.push_back({strformat("{} of {} to {}", info(op).mnemonic, name(d), name(to)), op,
                     scope.result(scope.g.make(spec))});
  };
  for (const OpInfo& row : kOps) {
    if (!is_alu(row.op) || row.arity != static_cast<int>(x.size()) || row.op == Op::ToIndex)
      continue;
    if (row.op != Op::Cast && row.op != Op::Bitcast) {
      add(row.op, has_trait(row.op, kBoolResult) ? DType::Bool : d);
      continue;
    }
    for (size_t id = 0; id < kDTypeCount; ++id)
      if (const auto to = dtype_from_id(static_cast<uint8_t>(id)); to && is_data(*to))
        add(row.op, *to);
  }
  return cases;
}

/// How many values of their dtype lie between two numbers.
int64_t steps_between(Value a, Value b) {
  const auto place = [](Value v) {
    uint64_t raw = 0;
    v.store(&raw);
    const int64_t sign = int64_t{1} << (bits(v.dtype()) - 1), x = static_cast<int64_t>(raw);
    return x & sign ? sign - x : x;
  };
  return std::abs(place(a) - place(b));
}

bool agree(Op op, Value want, Value got) {
  if (want == got || (want.is_nan() && got.is_nan())) return true;
  // Which zero is larger is not said.
  if (op == Op::Max || op == Op::Min) return want.is_zero() && got.is_zero();
  // Computed in f32 to an ulp and rounded once more.
  return has_trait(op, kApproximate) && !want.is_nan() && !got.is_nan() &&
         steps_between(want, got) <= 1;
}

void compare(const Case& c, const eval::Array& want, const std::vector<Tensor>& x) {
  std::vector<std::byte> bytes(want.bytes().size());
  c.result.copy_to(bytes);
  const auto width = static_cast<size_t>(bits(want.dtype()) / 8);
  if (c.op == Op::Bitcast) {  // NaNs keep all their bits; the oracle knows one NaN
    std::vector<std::byte> given(bytes.size());
    x[0].copy_to(given);
    EXPECT_TRUE(bytes == given) << c.name;
    return;
  }
  int wrong = 0;
  for (int64_t i = 0; i < want.count() && wrong < 3; ++i) {
    const Value got = Value::load(want.dtype(), &bytes[static_cast<size_t>(i) * width]);
    if (agree(c.op, want.at(i), got)) continue;
    ++wrong;
    std::string given;
    for (const Tensor& t : x) given += " " + t.index({i}).text();
    ADD_FAILURE() << c.name << ":" << given << " gives " << got.text() << ", not "
                  << want.at(i).text();
  }
}

/// All cases on one back end. `wanted`: the oracle's answers, found by the first one.
void check(const char* device, std::vector<std::vector<eval::Array>>& wanted) {
  SCOPED_TRACE(device);
  Options options = Options::from_environment();
  options.dev = testing::device_here(device);
  Context context(options);
  const ContextScope scope(context);
  size_t group = 0;
  for (const DType d : narrow_dtypes())
    for (const int arity : {1, 2}) {
      const std::vector<Tensor> x = operands(d, arity);
      const std::vector<Case> cases = cases_of(d, x);
      std::vector<Tensor> results;
      for (const Case& c : cases) results.push_back(c.result);
      if (group == wanted.size()) {
        wanted.emplace_back();
        for (const Tensor& t : results) wanted.back().push_back(evaluated(t));
      }
      realize(results);
      for (size_t i = 0; i < cases.size(); ++i) compare(cases[i], wanted[group][i], x);
      ++group;
    }
}

TEST(Exhaustive, NarrowDtypesOnEveryBackEnd) {
  std::vector<std::vector<eval::Array>> wanted;
  for (const char* device : {"CPU:X86", "CPU:INTERP", "CPU:C"}) check(device, wanted);
  size_t ops = 0;
  for (const auto& group : wanted) ops += group.size();
  EXPECT_GT(ops, 350u);
}

}  // namespace
}  // namespace weft
