#include "weft/onnx/stored.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/io/tensors.h"
#include "weft/onnx/read_parts.h"

namespace weft::onnx {

namespace {

using Kind = DeclaredType::Kind;

Value read_value(WireReader m, const DeclaredType& declared, Source& source);

/// SequenceProto; its elements have a field by their kind.
Value read_sequence(WireReader m, const DeclaredType& declared, Source& source) {
  static const DeclaredType kUnknown;
  const DeclaredType& element = declared.of ? *declared.of : kUnknown;
  Values elements;
  while (m.next())
    if (m.field() == 3 || (m.field() >= 5 && m.field() <= 7))
      elements.push_back(read_value(m.message(), element, source));
  return Value::sequence(std::move(elements));
}

/// OptionalProto.
Value read_optional(WireReader m, const DeclaredType& declared, Source& source) {
  static const DeclaredType kUnknown;
  Value element;
  while (m.next())
    if (m.field() == 3 || (m.field() >= 5 && m.field() <= 7))
      element = read_value(m.message(), declared.of ? *declared.of : kUnknown, source);
  return Value::optional(element);
}

/// One tensor of all values, which lie apart in the file.
Value joined(const Values& values) {
  if (values.empty()) return Value(Tensor::zeros({0}));
  if (values[0].kind() != Value::Kind::Tensor) return Value::sequence(values);
  std::vector<Tensor> all;
  for (const Value& v : values) all.push_back(v.tensor().reshape({-1}));
  return Value(Tensor::cat(all), values[0].type());
}

/// MapProto.
Value read_map(WireReader m, const DeclaredType& declared, Source& source) {
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
  Value values;
  while (m.next()) {
    if (m.field() == 3) m.each_integer([&](int64_t x) { numbers.push_back(x); });
    if (m.field() == 4) texts.emplace_back(m.text());
    if (m.field() == 5) {
      const Value all = read_sequence(m.message(), declared, source);
      values = joined(all.elements());
    }
  }
  const auto count = static_cast<int64_t>(std::max(texts.size(), numbers.size()));
  const Value keys = texts.empty() ? Value(Tensor::from(numbers, {count}))
                                   : Value::strings(std::move(texts), {count});
  return Value::map(keys, values);
}

Value read_value(WireReader m, const DeclaredType& declared, Source& source) {
  switch (declared.kind) {
    case Kind::Sequence: return read_sequence(m, declared, source);
    case Kind::Optional: return read_optional(m, declared, source);
    case Kind::Map: return read_map(m, declared, source);
    default: return Value(read_tensor(m, source));
  }
}

// ---- comparing

const char* kind_text(Value::Kind kind) {
  constexpr const char* kTexts[] = {"nothing", "tensor", "strings", "sequence", "optional", "map"};
  return kTexts[static_cast<size_t>(kind)];
}

HostArray elements_of(const Value& x) {
  if (const auto constant = x.constant()) return *constant;
  return host_array_of(x.tensor());
}

bool close(const weft::Value& x, const weft::Value& wanted, double rtol, double atol) {
  if (is_int(x.dtype()) && x == wanted) return true;  // 64 bits are more than a double's
  const double a = x.as_double(), b = wanted.as_double();
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || (std::isfinite(b) && std::fabs(a - b) <= atol + rtol * std::fabs(b));
}

std::string number_difference(const Value& x, const Value& wanted, double rtol, double atol) {
  const HostArray a = elements_of(x), b = elements_of(wanted);
  const size_t size = static_cast<size_t>(bits(a.dtype)) / 8;
  size_t different = 0;
  std::string first;
  for (size_t at = 0; at < a.bytes.size(); at += size) {
    const auto got = weft::Value::load(a.dtype, a.bytes.data() + at);
    const auto want = weft::Value::load(b.dtype, b.bytes.data() + at);
    if (close(got, want, rtol, atol)) continue;
    if (different++ == 0)
      first = strformat("element {} is {} and should be {}", at / size, got.text(), want.text());
  }
  if (different == 0) return "";
  return strformat("{}; {} of {} differ", first, different, a.numel());
}

std::string list_difference(const Values& x, const Values& wanted, double rtol, double atol) {
  if (x.size() != wanted.size())
    return strformat("{} elements, and should be {}", x.size(), wanted.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const std::string text = difference(x[i], wanted[i], rtol, atol);
    if (!text.empty()) return strformat("[{}]: {}", i, text);
  }
  return "";
}

}  // namespace

Value parse_stored(std::span<const std::byte> data, std::string_view what,
                   const DeclaredType& declared, std::shared_ptr<const void> owner) {
  Source source{what, std::move(owner), {}};
  return read_value(WireReader(data, what), declared, source);
}

Value read_stored(const std::string& path, const DeclaredType& declared) {
  const auto file = MappedFile::open(path);
  return parse_stored(file->bytes(), path, declared, file);
}

std::string difference(const Value& x, const Value& wanted, double rtol, double atol) {
  if (x.kind() != wanted.kind())
    return strformat("is {} and should be {}", kind_text(x.kind()), kind_text(wanted.kind()));
  if (x.kind() == Value::Kind::None) return "";
  if (x.kind() != Value::Kind::Tensor && x.kind() != Value::Kind::Strings)
    return list_difference(x.elements(), wanted.elements(), rtol, atol);
  if (x.type() != wanted.type())
    return strformat("is {} and should be {}", name(x.type()), name(wanted.type()));
  if (!(x.dims() == wanted.dims()))
    return strformat("has shape {} and should have {}", x.dims().text(), wanted.dims().text());
  if (x.kind() == Value::Kind::Tensor) return number_difference(x, wanted, rtol, atol);
  for (size_t i = 0; i < x.texts().size(); ++i)
    if (x.texts()[i] != wanted.texts()[i])
      return strformat("element {} is {} and should be {}", i, quoted_name(x.texts()[i]),
                       quoted_name(wanted.texts()[i]));
  return "";
}

}  // namespace weft::onnx
