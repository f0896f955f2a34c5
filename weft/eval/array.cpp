#include "weft/eval/array.h"

#include <cstring>

#include "weft/base/checked.h"
#include "weft/base/error.h"

namespace weft::eval {

int64_t count_of(std::span<const int64_t> extents) {
  int64_t count = 1;
  for (const int64_t e : extents) {
    if (e < 0) fail("eval", "an extent is {}; extents are at least 0", e);
    const auto product = checked_mul(count, e);
    if (!product) fail("eval", "the number of elements does not fit 64 bits");
    count = *product;
  }
  if (count > kMaxElements)
    fail("eval", "an array of {} elements; the oracle takes at most {}", count, kMaxElements);
  return count;
}

Array::Array(DType dtype, Extents extents)
    : dtype_(dtype), extents_(std::move(extents)), count_(count_of(extents_)) {
  bytes_.resize(static_cast<size_t>(bytes_for(dtype, count_)));
}

namespace {
template <class Number>
Array from_numbers(DType dtype, Extents extents, std::span<const Number> elements) {
  Array a(dtype, std::move(extents));
  if (static_cast<int64_t>(elements.size()) != a.count())
    fail("eval", "{} elements given for an array of {}", elements.size(), a.count());
  for (int64_t i = 0; i < a.count(); ++i)
    a.set(i, Value::of(dtype, elements[static_cast<size_t>(i)]));
  return a;
}
}  // namespace

Array Array::of(DType dtype, Extents extents, std::span<const double> elements) {
  return from_numbers(dtype, std::move(extents), elements);
}
Array Array::of_ints(DType dtype, Extents extents, std::span<const int64_t> elements) {
  return from_numbers(dtype, std::move(extents), elements);
}

Array Array::scalar(Value v) {
  Array a(v.dtype(), {});
  a.set(0, v);
  return a;
}

Array Array::copy_of(DType dtype, Extents extents, const void* data) {
  Array a(dtype, std::move(extents));
  if (!a.bytes_.empty()) std::memcpy(a.bytes_.data(), data, a.bytes_.size());
  return a;
}

std::vector<double> Array::doubles() const {
  std::vector<double> out;
  for (int64_t i = 0; i < count_; ++i) out.push_back(at(i).as_double());
  return out;
}

std::vector<int64_t> Array::ints() const {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count_; ++i) out.push_back(at(i).as_int());
  return out;
}

std::string Array::type_text() const {
  std::string out(name(dtype_));
  out += " (";
  for (size_t i = 0; i < extents_.size(); ++i)
    append_format(out, "{}{}", i ? ", " : "", extents_[i]);
  return out + ")";
}

std::string Array::text(int64_t limit) const {
  std::string out = type_text() + " [";
  for (int64_t i = 0; i < count_ && i < limit; ++i) {
    if (i) out += ", ";
    out += at(i).text();
  }
  return out + (count_ > limit ? ", ...]" : "]");
}

bool operator==(const Array& a, const Array& b) {
  if (a.dtype_ != b.dtype_ || a.extents_ != b.extents_) return false;
  if (a.bytes_ == b.bytes_) return true;
  for (int64_t i = 0; i < a.count_; ++i) {
    const Value x = a.at(i), y = b.at(i);
    if (!(x == y) && !(x.is_nan() && y.is_nan())) return false;
  }
  return true;
}

}  // namespace weft::eval
