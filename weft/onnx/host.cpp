#include "weft/onnx/host.h"

#include <charconv>
#include <cmath>

#include "weft/base/checked.h"
#include "weft/base/error.h"

namespace weft::onnx {
namespace {

HostArray read_now(const Value& x) {
  if (std::optional<HostArray> known = x.constant()) return *std::move(known);
  const Tensor& t = x.tensor();
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(t.dtype(), t.numel())));
  t.copy_to(bytes);
  return HostArray::owned(t.dtype(), t.shape(), std::move(bytes));
}

// Row-major positions in x of the elements that are at each place of `shape`.
std::vector<int64_t> broadcast_positions(const Dims& x, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t n : shape) count = mul_or_fail("onnx.node", count, n);
  std::vector<int64_t> positions(static_cast<size_t>(count), 0);
  int64_t inner = 1, stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const size_t missing = shape.size() - x.size();
    const int64_t size = d >= missing ? x[d - missing].value() : 1;
    if (size != 1)
      for (int64_t i = 0; i < count; ++i) positions[i] += i / inner % shape[d] * stride;
    inner *= std::max<int64_t>(shape[d], 1);
    stride *= size;
  }
  return positions;
}

std::vector<int64_t> broadcast_shape(const Dims& a, const Dims& b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()));
  for (size_t i = 0; i < shape.size(); ++i) {  // from the last axis
    const int64_t m = i < a.size() ? a[a.size() - 1 - i].value() : 1;
    const int64_t n = i < b.size() ? b[b.size() - 1 - i].value() : 1;
    if (m != n && m != 1 && n != 1)
      fail("onnx.node", "shapes {} and {} do not broadcast; sizes are equal or 1", a.text(),
           b.text());
    shape[shape.size() - 1 - i] = m == 1 ? n : m;
  }
  return shape;
}

double parse_number(const std::string& text) {
  double x = 0;
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  const bool plus = begin != std::string::npos && text[begin] == '+';
  const char* first = begin == std::string::npos ? text.data() : text.data() + begin + plus;
  const char* last = begin == std::string::npos ? text.data() : text.data() + end + 1;
  const auto [stop, error] = std::from_chars(first, last, x);
  if (error == std::errc::result_out_of_range) return std::strtod(text.c_str(), nullptr);
  if (error != std::errc() || stop != last)
    fail("onnx.node", "{} is no number; Cast makes numbers of texts such as 3, -1.5e6, NaN, -INF",
         quoted_name(text));
  return x;
}

weft::Value parse_element(const std::string& text, DType dtype) {
  if (is_int(dtype)) {  // exact above 2^53
    int64_t x = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (error == std::errc() && stop == text.data() + text.size()) return weft::Value::of(dtype, x);
  }
  return weft::Value::of(dtype, parse_number(text));
}

// As ONNX Runtime writes them: 8 digits of f32, 17 of f64, as few as say so.
std::string number_text(const weft::Value& x) {
  const DType dtype = x.dtype();
  if (is_bool(dtype)) return x.as_bool() ? "1" : "0";
  if (is_unsigned(dtype)) return std::to_string(x.as_uint());
  if (is_int(dtype)) return std::to_string(x.as_int());
  const double number = x.as_double();
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-INF" : "INF";
  return dtype == DType::F64 ? strformat("{:.17g}", number) : strformat("{:.8g}", number);
}

}  // namespace

Value host_numbers(const std::vector<double>& elements, std::vector<int64_t> shape, DType dtype) {
  const auto count = static_cast<int64_t>(elements.size());
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(dtype, count)));
  for (int64_t i = 0; i < count; ++i)
    weft::Value::of(dtype, elements[i]).store(bytes.data() + bytes_for(dtype, i));
  return Value(HostArray::owned(dtype, std::move(shape), std::move(bytes)));
}

std::vector<double> as_doubles(const HostArray& a) {
  std::vector<double> all(static_cast<size_t>(a.numel()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = element(a, static_cast<int64_t>(i)).as_double();
  return all;
}

std::vector<int64_t> as_ints(const HostArray& a) {
  std::vector<int64_t> all(static_cast<size_t>(a.numel()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = element(a, static_cast<int64_t>(i)).as_int();
  return all;
}

std::vector<float> as_floats(const HostArray& a) {
  std::vector<float> all(static_cast<size_t>(a.numel()));
  if (a.dtype == DType::F32) {
    if (!all.empty()) std::memcpy(all.data(), a.bytes.data(), a.bytes.size());
    return all;
  }
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<float>(element(a, static_cast<int64_t>(i)).as_double());
  return all;
}

int64_t number_now(const Value& x) {
  const HostArray all = read_now(x);
  if (all.numel() != 1)
    fail("onnx.node", "a tensor of shape {} where one number has to be", shape_text(all.shape));
  return element(all, 0).cast(DType::I64).as_int();
}

std::vector<int64_t> static_sizes(const Dims& dims) {
  std::vector<int64_t> sizes;
  for (const Dim& d : dims) sizes.push_back(d.value());
  return sizes;
}

Value moved(const Value& x, FunctionRef<Tensor(const Tensor& x)> movement) {
  if (x.kind() != Value::Kind::Strings) return Value(movement(x.tensor()), x.type());
  const auto count = static_cast<int64_t>(x.texts().size());
  const Tensor places = movement(Tensor::arange(count, DType::I64).reshape(x.dims()));
  std::vector<std::string> texts;
  for (const int64_t at : places.to_vector<int64_t>())
    texts.push_back(x.texts()[static_cast<size_t>(at)]);
  return Value::strings(std::move(texts), places.shape());
}

Value cast_from_strings(const Value& x, ElementType to) {
  const DType dtype = dtype_of(to);
  const auto& texts = x.texts();
  std::vector<std::byte> bytes(
      static_cast<size_t>(bytes_for(dtype, static_cast<int64_t>(texts.size()))));
  for (size_t i = 0; i < texts.size(); ++i)
    parse_element(texts[i], dtype).store(bytes.data() + bytes_for(dtype, static_cast<int64_t>(i)));
  return Value(HostArray::owned(dtype, static_sizes(x.dims()), std::move(bytes)));
}

Value cast_to_strings(const Value& x) {
  const HostArray all = read_now(x);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < all.numel(); ++i) texts.push_back(number_text(element(all, i)));
  return Value::strings(std::move(texts), all.shape);
}

StringPair broadcast_strings(const Value& a, const Value& b) {
  StringPair pair;
  pair.shape = broadcast_shape(a.dims(), b.dims());
  for (const int64_t at : broadcast_positions(a.dims(), pair.shape))
    pair.a.push_back(&a.texts()[static_cast<size_t>(at)]);
  for (const int64_t at : broadcast_positions(b.dims(), pair.shape))
    pair.b.push_back(&b.texts()[static_cast<size_t>(at)]);
  return pair;
}

Value equal_strings(const Value& a, const Value& b) {
  const StringPair pair = broadcast_strings(a, b);
  std::vector<uint8_t> equal;
  for (size_t i = 0; i < pair.a.size(); ++i) equal.push_back(*pair.a[i] == *pair.b[i]);
  return host_value(equal, pair.shape, DType::Bool);
}

Value where_strings(const Value& condition, const Value& a, const Value& b) {
  const HostArray chosen = read_now(condition);
  const std::vector<int64_t> shape =
      broadcast_shape(Dims(broadcast_shape(a.dims(), b.dims())), Dims(chosen.shape));
  const auto at = broadcast_positions(a.dims(), shape), bt = broadcast_positions(b.dims(), shape),
             ct = broadcast_positions(Dims(chosen.shape), shape);
  std::vector<std::string> texts;
  for (size_t i = 0; i < ct.size(); ++i)
    texts.push_back(element(chosen, ct[i]).as_bool() ? a.texts()[static_cast<size_t>(at[i])]
                                                     : b.texts()[static_cast<size_t>(bt[i])]);
  return Value::strings(std::move(texts), shape);
}

}  // namespace weft::onnx
