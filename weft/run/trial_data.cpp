#include "weft/run/trial_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "weft/base/hash.h"
#include "weft/dtype/value.h"
#include "weft/graph/fold.h"
#include "weft/graph/graph.h"
#include "weft/graph/loops.h"

namespace weft {
namespace {

constexpr size_t kPeriod = 65521;  // elements, after which data repeats: a prime, as no stride is
constexpr double kLargestExact = 1 << 20;  // up to which f32's sums of whole numbers are exact
constexpr double kSlack = 8;               // times what sums are usually off by

Value element(DType dtype, TrialData data, uint64_t bits) {
  const auto small = static_cast<int64_t>(bits % 5) - 2;
  if (!is_float(dtype)) return Value::of(dtype, is_bool(dtype) ? small & 1 : std::abs(small));
  if (data == TrialData::Whole) return Value::of(dtype, static_cast<double>(small));
  return Value::of(dtype, 0.5 + static_cast<double>(bits >> 11) * 0x1p-53);
}

/// Whether an operation on whole numbers gives a whole one, without rounding.
bool keeps_whole(NodeRef n) {
  if (!is_float(n->dtype) || !is_alu(n->op)) return true;
  switch (n->op) {
    case Op::Add:
    case Op::Mul:
    case Op::MulAcc:
    case Op::Neg:
    case Op::Max:
    case Op::Min:
    case Op::Where:
    case Op::Cast: return true;
    default: return has_trait(n->op, kWords);
  }
}

bool whole_constant(NodeRef n) {
  if (n->op != Op::Const || !is_float(n->dtype)) return true;
  const double x = const_value(n).as_double();
  return !std::isfinite(x) || (x == std::round(x) && std::abs(x) <= 8);
}

double epsilon(DType dtype) {
  const int size = bits(dtype);
  if (size >= 64) return 0x1p-52;
  if (size >= 32) return 0x1p-23;
  return dtype == DType::F16 ? 0x1p-10 : dtype == DType::BF16 ? 0x1p-7 : 0x1p-2;
}

/// Of the largest element that is a number.
double largest(std::span<const std::byte> data, DType dtype, size_t size) {
  double most = 0;
  for (size_t at = 0; at < data.size(); at += size)
    if (const double x = std::abs(Value::load(dtype, &data[at]).as_double()); std::isfinite(x))
      most = std::max(most, x);
  return most;
}

}  // namespace

void fill_trial_data(std::span<std::byte> memory, DType dtype, TrialData data, uint64_t seed) {
  const auto size = static_cast<size_t>(std::max(8, bits(dtype))) / 8;
  const size_t count = memory.size() / size, first = std::min(count, kPeriod);
  for (size_t i = 0; i < first; ++i)
    element(dtype, data, hash_mix(seed << 32 | i)).store(&memory[i * size]);
  for (size_t done = first; done < count;) {
    const size_t next = std::min(kPeriod, count - done);
    std::memcpy(&memory[done * size], memory.data(), next * size);
    done += next;
  }
}

TrialTolerance TrialTolerance::of(const Kernel& kernel) {
  TrialTolerance out;
  for (NodeRef n : Toposort(kernel.sink)) {
    out.exact = out.exact && keeps_whole(n) && whole_constant(n);
    if (n->op == Op::Range) continue;
    if (n->op != Op::Reduce && n->op != Op::Loop && n->op != Op::Scan) continue;
    double terms = 1;
    for (NodeRef s : n->src())
      if (s->op == Op::Range) terms *= static_cast<double>(std::max<int64_t>(1, s->src(0)->vmax));
    out.terms = std::max(out.terms, terms);
    if (n->op != Op::Reduce) out.exact = false;
    out.reassociates = out.reassociates || is_float(n->dtype) || n->op != Op::Reduce;
  }
  return out;
}

bool same_values(std::span<const std::byte> expected, std::span<const std::byte> got, DType dtype,
                 TrialData data, const TrialTolerance& tolerance) {
  if (std::ranges::equal(expected, got)) return true;
  const auto size = static_cast<size_t>(std::max(8, bits(dtype))) / 8;
  if (!is_float(dtype)) return false;
  const double most = largest(expected, dtype, size);
  const bool bitwise = !tolerance.reassociates ||
                       (data == TrialData::Whole && tolerance.exact && most <= kLargestExact);
  const double summed = bits(dtype) >= 64 ? epsilon(DType::F64) : epsilon(DType::F32);
  const double sums = kSlack * (2 + std::sqrt(tolerance.terms)) * summed * most;
  for (size_t at = 0; at < expected.size(); at += size) {
    const Value a = Value::load(dtype, &expected[at]), b = Value::load(dtype, &got[at]);
    if (a == b || (a.is_nan() && b.is_nan()) || (a.is_zero() && b.is_zero())) continue;
    if (bitwise) return false;
    const double x = a.as_double(), y = b.as_double();
    if (!(std::abs(x - y) <= sums + epsilon(dtype) * std::abs(x))) return false;
  }
  return true;
}

}  // namespace weft
