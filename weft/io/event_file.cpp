#include "weft/io/event_file.h"

#include <array>
#include <bit>
#include <chrono>
#include <exception>

#include "weft/base/error.h"
#include "weft/base/process.h"
#include "weft/base/spans.h"

namespace weft {
namespace {

constexpr size_t kWaitingBytes = size_t{1} << 14;
constexpr uint64_t kWaitingNs = 2'000'000'000;

// CRC-32C (Castagnoli), reflected: RFC 3720, appendix B.4.
constexpr uint32_t kCastagnoli = 0x82f63b78;

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kCastagnoli : 0);
    table[i] = crc;
  }
  return table;
}

uint32_t crc32c(std::span<const std::byte> data) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~uint32_t{0};
  for (const std::byte b : data) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint32_t>(b)) & 255];
  return ~crc;
}

// TensorFlow, tsl/lib/hash/crc32c.h: a checksum of data that has checksums in it is no good.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8U; }

// TensorFlow, tsl/lib/io/record_writer.h: u64 length, its checksum, the data, their checksum.
void append_record(ByteWriter& out, std::span<const std::byte> data) {
  const uint64_t length = data.size();
  out.u64(length);
  out.u32(masked(crc32c(std::as_bytes(std::span(&length, 1)))));
  out.bytes(data);
  out.u32(masked(crc32c(data)));
}

// Protocol buffers: a field's number and its wire type (protobuf.dev, "Encoding").
enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
constexpr uint8_t key(uint8_t field, WireType type) {
  return static_cast<uint8_t>(field << 3 | type);
}

void append_message(ByteWriter& out, uint8_t field, std::span<const std::byte> message) {
  out.u8(key(field, kBytes));
  out.varint(message.size());
  out.bytes(message);
}
void append_text(ByteWriter& out, uint8_t field, std::string_view text) {
  append_message(out, field, std::as_bytes(std::span(text)));
}

int64_t unix_ns() {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::system_clock;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

/// Of a name that no other file has: TensorBoard takes those with "tfevents" in them.
std::string new_path(const std::string& folder) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t now = unix_ns();
  return strformat("{}/events.out.tfevents.{}.weft.{}.{}", folder, now / kSecond, process_id(),
                   now % kSecond);
}

}  // namespace

EventFile::EventFile(const std::string& folder)
    : file_(std::make_unique<AppendFile>(new_path(folder))) {
  ByteWriter version;
  append_text(version, 3, "brain.Event:2");  // Event.file_version: tensorflow/core/util/event.proto
  event(version.data());
  flush();
}

EventFile::~EventFile() {
  try {
    flush();
  } catch (const std::exception&) {
    // A destructor has nobody to tell; flush() has.
  }
}

/// Event: wall_time = 1 (double), step = 2 (int64), then what happened.
void EventFile::event(std::span<const std::byte> fields) {
  ByteWriter event;
  event.u8(key(1, kFixed64));
  event.f64(static_cast<double>(unix_ns()) * 1e-9);
  event.bytes(fields);
  append_record(waiting_, event.data());
  if (waiting_.size() > kWaitingBytes || now_ns() - written_ns_ > kWaitingNs) flush();
}

/// Event.summary = 5; Summary.value = 1; Value.tag = 1, Value.simple_value = 2 (float):
/// tensorflow/core/framework/summary.proto.
void EventFile::scalar(std::string_view tag, double value, int64_t step) {
  ByteWriter point, summary, fields;
  append_text(point, 1, tag);
  point.u8(key(2, kFixed32));
  point.u32(std::bit_cast<uint32_t>(static_cast<float>(value)));
  append_message(summary, 1, point.data());
  fields.u8(key(2, kVarint));
  fields.varint(static_cast<uint64_t>(step));
  append_message(fields, 5, summary.data());
  event(fields.data());
}

void EventFile::flush() {
  file_->append(waiting_.data());
  waiting_.clear();
  written_ns_ = now_ns();
}

}  // namespace weft
