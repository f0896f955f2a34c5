#include "weft/onnx/wire_writer.h"

#include <bit>

namespace weft::onnx {

namespace {

// https://protobuf.dev/programming-guides/encoding
constexpr uint32_t kVarint = 0, kBytes = 2, kFixed32 = 5;

std::string_view characters(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void WireWriter::append(std::string_view own) {
  if (parts_.empty() || !parts_.back().lent.empty()) parts_.emplace_back();
  parts_.back().own += own;
  size_ += own.size();
}

void WireWriter::varint(uint64_t value) {
  char digits[10];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) digits[count++] = static_cast<char>(value | 0x80);
  digits[count++] = static_cast<char>(value);
  append({digits, count});
}

void WireWriter::integer(uint32_t field, int64_t value) {
  key(field, kVarint);
  varint(static_cast<uint64_t>(value));
}

void WireWriter::number(uint32_t field, float value) {
  key(field, kFixed32);
  append(characters(std::as_bytes(std::span(&value, 1))));  // the host is little-endian
}

void WireWriter::text(uint32_t field, std::string_view value) {
  key(field, kBytes);
  varint(value.size());
  append(value);
}

void WireWriter::bytes(uint32_t field, std::span<const std::byte> lent) {
  key(field, kBytes);
  varint(lent.size());
  if (lent.empty()) return;
  parts_.back().lent = lent;
  size_ += lent.size();
}

void WireWriter::message(uint32_t field, WireWriter part) {
  key(field, kBytes);
  varint(part.size_);
  for (Part& p : part.parts_) {
    append(p.own);
    parts_.back().lent = p.lent;
    size_ += p.lent.size();
  }
}

void WireWriter::integers(uint32_t field, const std::vector<int64_t>& values) {
  WireWriter packed;
  for (const int64_t v : values) packed.varint(static_cast<uint64_t>(v));
  message(field, std::move(packed));
}

void WireWriter::numbers(uint32_t field, const std::vector<double>& values) {
  WireWriter packed;
  for (const double v : values) {
    const auto single = static_cast<float>(v);
    packed.append(characters(std::as_bytes(std::span(&single, 1))));
  }
  message(field, std::move(packed));
}

void WireWriter::write(FunctionRef<void(std::span<const std::byte>)> sink) const {
  for (const Part& p : parts_) {
    sink(std::as_bytes(std::span(p.own)));
    if (!p.lent.empty()) sink(p.lent);
  }
}

}  // namespace weft::onnx
