#include "weft/onnx/wire.h"

#include <cstring>

#include "weft/base/error.h"
#include "weft/base/utf8.h"

namespace weft::onnx {

void WireReader::refuse_text(const std::string& problem) const {
  fail_runtime("onnx.wire", "{}: byte {}: {}", what_, at_, problem);
}

std::span<const std::byte> WireReader::take(uint64_t size) {
  if (size > data_.size()) {
    at_ = place_;
    refuse("{} bytes are announced and {} are left; the file is cut or damaged", size,
           data_.size());
  }
  const std::span<const std::byte> taken = data_.first(static_cast<size_t>(size));
  data_ = data_.subspan(static_cast<size_t>(size));
  place_ += static_cast<size_t>(size);
  return taken;
}

uint64_t WireReader::take_varint() {
  uint64_t value = 0;
  const size_t most = data_.size() < 10 ? data_.size() : 10;
  for (size_t i = 0; i < most; ++i) {
    const auto byte = std::to_integer<uint64_t>(data_[i]);
    if (i == 9 && byte > 1) break;
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      take(i + 1);
      return value;
    }
  }
  at_ = place_;
  if (most < 10) refuse("the data end within a number; the file is cut or damaged");
  refuse("a number of more than 64 bits; this is no protocol buffer, or it is damaged");
}

uint64_t WireReader::take_fixed(size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, take(size).data(), size);  // the host is little-endian
  return value;
}

bool WireReader::next() {
  if (data_.empty()) return false;
  at_ = place_;
  const uint64_t key = take_varint();
  const uint64_t number = key >> 3, type = key & 7;
  if (number == 0 || number > 0x1fffffff)
    refuse("field number {} is not in 1 to 536870911", number);
  if (type == 3 || type == 4) refuse("field {} is a group, which ONNX has none of", number);
  if (type > 5) refuse("field {} is of wire type {}, which does not exist", number, type);
  field_ = static_cast<uint32_t>(number);
  type_ = static_cast<Type>(type);
  at_ = place_;
  if (type_ == Type::Varint) value_ = take_varint();
  if (type_ == Type::Fixed64) value_ = take_fixed(8);
  if (type_ == Type::Fixed32) value_ = take_fixed(4);
  if (type_ == Type::Bytes) {
    const uint64_t size = take_varint();
    at_ = place_;
    bytes_ = take(size);
  }
  return true;
}

void WireReader::require(Type type, const char* wanted) const {
  if (type_ != type)
    refuse("field {} has wire type {} where {} is expected", field_, static_cast<int>(type_),
           wanted);
}

int64_t WireReader::integer() const {
  require(Type::Varint, "an integer");
  return static_cast<int64_t>(value_);
}

float WireReader::number() const {
  require(Type::Fixed32, "a 32-bit number");
  return std::bit_cast<float>(static_cast<uint32_t>(value_));
}

uint64_t WireReader::fixed64() const {
  require(Type::Fixed64, "a 64-bit number");
  return value_;
}

std::span<const std::byte> WireReader::bytes() const {
  require(Type::Bytes, "bytes");
  return bytes_;
}

std::string_view WireReader::text() const {
  const std::span<const std::byte> all = bytes();
  const std::string_view text(reinterpret_cast<const char*>(all.data()), all.size());
  if (!is_utf8(text)) refuse("a name that is not UTF-8");
  return text;
}

WireReader WireReader::message() const {
  if (depth_ >= kDeepest) refuse("more than {} messages inside one another", kDeepest);
  return {bytes(), what_, at_, depth_ + 1};
}

WireReader WireReader::packed(size_t size) const {
  const std::span<const std::byte> all = bytes();
  if (all.size() % size != 0)
    refuse("{} bytes are no whole number of elements of {} bytes", all.size(), size);
  return {all, what_, at_, depth_};
}

}  // namespace weft::onnx
