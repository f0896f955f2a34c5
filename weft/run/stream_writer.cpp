#include "weft/run/stream_writer.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/log.h"
#include "weft/base/process.h"
#include "weft/base/secrets.h"
#include "weft/base/version.h"
#include "weft/device/device.h"
#include "weft/rewrite/print.h"
#include "weft/run/state_writer.h"
#include "weft/target/core.h"

namespace weft {
namespace {

using recording::Kind;

constexpr size_t kBlockBytes = size_t{1} << 16;  // about what is written at once: stays in a cache
// Tables of names stay small: what has a million different details is told without them.
constexpr size_t kMostStrings = size_t{1} << 20;
constexpr size_t kLongestString = 4096;

/// Options that are not as they are by themselves, but for those of the system.
std::vector<std::string> changed_options(const Options& options) {
  std::vector<std::string> out;
  const Options plain;
  size_t count = 0;
  const OptionRow* rows = option_rows(count);
  for (size_t i = 0; i < count; ++i) {
    if (std::string_view(rows[i].type) == "SYSTEM") continue;
    const std::string_view name = std::string_view(rows[i].name).substr(5);  // behind WEFT_
    const std::string value = options.text(name);
    if (value != plain.text(name)) out.push_back(strformat("{}={}", rows[i].name, value));
  }
  return out;
}

void write_list(ByteWriter& out, const std::vector<std::string>& texts) {
  out.varint(texts.size());
  for (const std::string& t : texts) out.text(t);
}

}  // namespace

StreamWriter::StreamWriter(Context& context, std::string path, uint64_t most_bytes)
    : context_(context), file_(std::move(path)), most_bytes_(most_bytes) {
  restart();
}

void StreamWriter::restart() {
  const uint64_t now = now_ns();
  stream_ = hash_combine(hash_mix(now), static_cast<uint64_t>(process_id()));
  blocks_ = 0;
  written_strings_ = 0;
  kernels_ = 0;
  strings_ = {}, rules_ = {};
  begin_block();
  describe_process();
}

void StreamWriter::describe_process() {
  const ProcessFacts facts = process_facts();
  const Device& device = context_.get<DeviceTable>().default_device();
  ByteWriter& out = begin();
  out.varint(static_cast<uint64_t>(facts.pid));
  out.varint(static_cast<uint64_t>(facts.parent));
  out.u64(now_ns());
  out.u64(static_cast<uint64_t>(facts.unix_ns));
  out.text(kVersion);
  out.text(strformat("{:016x}", build_id()));
  out.text(facts.directory);
  out.text(device.name());
  out.text(text_with_core(device.target().machine));
  write_list(out, without_secrets(facts.command));
  write_list(out, changed_options(context_.options()));
  end(Kind::Process);
}

uint64_t StreamWriter::string(std::string_view text) {
  if (text.empty()) return 0;
  text = text.substr(0, kLongestString);
  const uint64_t key = hash_text(text) | 1;
  if (const uint64_t* known = strings_.find(key)) return *known;
  if (strings_.size() >= kMostStrings) return 0;
  put(Kind::String, std::as_bytes(std::span(text)));
  return strings_.set(key, strings_.size() + 1);
}

uint64_t StreamWriter::rule(const Rule& rule) {
  if (const uint64_t* known = rules_.find(&rule)) return *known;
  const uint64_t name = string(rule.name);
  ByteWriter out;
  out.varint(name);
  out.text(to_text(rule));
  out.text(source_of(rule));
  put(Kind::Rule, out.data());
  return rules_.set(&rule, name);
}

void StreamWriter::end(Kind kind) { add(kind, record_.data()); }

void StreamWriter::add(Kind kind, std::span<const std::byte> content) {
  put(kind, content);
  if (block_.size() >= kBlockBytes) flush();
}

void StreamWriter::add(StateWriter& states) {
  if (open_) block_.bytes(states.records().data());
  states.clear_records();
  if (block_.size() >= kBlockBytes) flush();
}

void StreamWriter::put(Kind kind, std::span<const std::byte> content) {
  if (!open_) return;
  block_.u8(static_cast<uint8_t>(kind));
  block_.varint(content.size());
  block_.bytes(content);
}

void StreamWriter::flush() {
  if (!open_ || block_.size() == recording::kHeaderBytes) return;
  try {
    if (file_.size() + block_.size() > most_bytes_)
      return close(strformat("the recording reached WEFT_VIZ_BYTES ({}) here", most_bytes_));
    write_block();
  } catch (const Error& error) {
    open_ = false;
    log_line(context_, strformat("nothing more is recorded: {}", error.what()));
  }
  begin_block();
}

void StreamWriter::finish() {
  flush();
  open_ = false;
}

/// Room for the header, which is known in the end.
void StreamWriter::begin_block() {
  constexpr std::array<std::byte, recording::kHeaderBytes> kRoom{};
  block_.clear();
  block_.bytes(kRoom);
}

void StreamWriter::write_block() {
  ByteWriter head;
  head.bytes(std::as_bytes(std::span(recording::kMagic)));
  head.u32(recording::kVersion);
  head.u32(static_cast<uint32_t>(block_.size() - recording::kHeaderBytes));
  head.u64(0);
  head.u64(stream_);
  head.u32(blocks_++);
  head.u64(written_strings_);
  const std::span<std::byte> block = block_.written();
  std::ranges::copy(head.data(), block.begin());
  const uint64_t checksum = hash_bytes(block.data(), block.size());
  std::memcpy(block.data() + recording::kChecksumAt, &checksum, sizeof(checksum));
  file_.append(block);
  written_strings_ = strings_.size();
}

/// The last block is a small one that says so, however full the file is.
void StreamWriter::close(const std::string& why) {
  begin_block();
  ByteWriter out;
  out.text(why);
  put(Kind::Cut, out.data());
  open_ = false;
  write_block();
  begin_block();
}

}  // namespace weft
