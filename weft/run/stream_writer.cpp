#include "weft/run/stream_writer.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/log.h"
#include "weft/base/process.h"
#include "weft/base/version.h"
#include "weft/device/device.h"
#include "weft/graph/binary.h"
#include "weft/graph/provenance.h"
#include "weft/rewrite/print.h"

namespace weft {
namespace {

using recording::Kind;

constexpr size_t kBlockBytes = size_t{1} << 18;  // about what is written at once
// Tables of names stay small: what has a million different details is told without them.
constexpr size_t kMostStrings = size_t{1} << 20;
constexpr size_t kLongestString = 4096;

uint64_t key_of(std::span<const std::byte> bytes, uint64_t seed) {
  return hash_bytes(bytes.data(), bytes.size(), seed) | 1;
}

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
  written_ = {};
  kernels_ = new_node_count_ = new_line_count_ = 0;
  strings_ = {}, states_ = {}, nodes_ = {}, rules_ = {};
  block_.clear(), new_nodes_.clear(), new_lines_.clear();
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
  out.text(device.target().machine.text());
  write_list(out, facts.command);
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

uint64_t StreamWriter::node(NodeRef root, const Provenance* lines) {
  if (const uint64_t* known = nodes_.find(root->key)) return *known;
  stack_.assign(1, {root, 0});
  while (!stack_.empty()) {
    auto& [n, next] = stack_.back();
    while (next < n->nsrc && nodes_.contains(n->src(next)->key)) ++next;
    if (next < n->nsrc) {
      stack_.emplace_back(n->src(next), 0);
      continue;
    }
    const uint64_t number = nodes_.size();
    write_node(new_nodes_, n, [&](NodeRef s) { return number - nodes_.at(s->key); });
    ++new_node_count_;
    if (const CallSite site = lines ? lines->find(n) : CallSite{}) {
      new_lines_.varint(number);
      new_lines_.varint(string(short_text(site)));
      ++new_line_count_;
    }
    nodes_.set(n->key, number);
    stack_.pop_back();
  }
  return nodes_.at(root->key);
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

uint64_t StreamWriter::state(const StateParts& parts, const Provenance* lines) {
  if (parts.kind == StateParts::Kind::None) return 0;
  state_.clear();
  state_.u8(static_cast<uint8_t>(parts.kind));
  encode(state_, parts, lines);
  const uint64_t key = key_of(state_.data(), 0);
  if (const uint64_t* known = states_.find(key)) return *known;
  add_new_nodes();
  put(Kind::State, state_.data());
  return states_.set(key, states_.size() + 1);
}

void StreamWriter::encode(ByteWriter& out, const StateParts& parts, const Provenance* lines) {
  switch (parts.kind) {
    case StateParts::Kind::Graph:
      out.varint(parts.nodes.size());
      for (NodeRef n : parts.nodes) out.varint(node(n, lines));
      break;
    case StateParts::Kind::Kernels:
      out.varint(parts.nodes.size());
      for (size_t i = 0; i < parts.nodes.size(); ++i) {
        out.varint(string(parts.names[i]));
        out.varint(node(parts.nodes[i]));
      }
      break;
    case StateParts::Kind::Program: encode_program(out, *parts.program); break;
    default: out.bytes(std::as_bytes(std::span(parts.bytes)));
  }
}

// text name; params: count, each u8 dtype, u8 read | written << 1; variables: count, nodes; size of
// the core range: node + 1 or 0; u8 grouped, grid: three nodes + 1 or 0, group: three varints; f64
// flops, f64 bytes; instructions: count, each zigzag of its node less the one before.
void StreamWriter::encode_program(ByteWriter& out, const LinearProgram& p) {
  const auto or_none = [&](NodeRef n) { return n ? node(n) + 1 : 0; };
  out.text(p.name);
  out.varint(p.params.size());
  for (const ProgramParam& param : p.params) {
    out.u8(static_cast<uint8_t>(param.dtype));
    out.u8(static_cast<uint8_t>((param.read ? 1 : 0) | (param.written ? 2 : 0)));
  }
  out.varint(p.variables.size());
  for (NodeRef v : p.variables) out.varint(node(v));
  out.varint(or_none(p.core_size));
  out.u8(p.launch.grouped);
  for (NodeRef n : p.launch.grid) out.varint(or_none(n));
  for (const int64_t n : p.launch.group) out.varint(static_cast<uint64_t>(n));
  out.f64(p.flops);
  out.f64(p.bytes);
  out.varint(p.code.size());
  uint64_t before = 0;
  for (NodeRef n : p.code) {
    const uint64_t number = node(n);
    out.signed_varint(static_cast<int64_t>(number - before));
    before = number;
  }
}

void StreamWriter::add_new_nodes() {
  const auto add = [this](Kind kind, uint64_t& count, ByteWriter& content) {
    if (count == 0) return;
    ByteWriter head;
    head.varint(count);
    head.bytes(content.data());
    count = 0;
    content.clear();
    put(kind, head.data());
  };
  add(Kind::Nodes, new_node_count_, new_nodes_);
  add(Kind::Lines, new_line_count_, new_lines_);
}

void StreamWriter::end(Kind kind) { add(kind, record_.data()); }

void StreamWriter::add(Kind kind, std::span<const std::byte> content) {
  add_new_nodes();
  put(kind, content);
  if (block_.size() >= kBlockBytes) flush();
}

void StreamWriter::put(Kind kind, std::span<const std::byte> content) {
  if (!open_) return;
  block_.u8(static_cast<uint8_t>(kind));
  block_.varint(content.size());
  block_.bytes(content);
}

void StreamWriter::flush() {
  if (!open_ || block_.size() == 0) return;
  try {
    if (file_.size() + block_.size() > most_bytes_)
      return close(strformat("the recording reached WEFT_VIZ_BYTES ({}) here", most_bytes_));
    write_block(block_.data());
  } catch (const Error& error) {
    open_ = false;
    log_line(context_, strformat("nothing more is recorded: {}", error.what()));
  }
  block_.clear();
}

void StreamWriter::write_block(std::span<const std::byte> records) {
  ByteWriter out;
  out.bytes(std::as_bytes(std::span(recording::kMagic)));
  out.u32(recording::kVersion);
  out.u32(static_cast<uint32_t>(records.size()));
  out.u64(0);
  out.u64(stream_);
  out.u32(blocks_++);
  for (const uint64_t count : {written_.strings, written_.nodes, written_.states}) out.u64(count);
  out.bytes(records);
  std::vector<std::byte> block = out.take();
  const uint64_t checksum = hash_bytes(block.data(), block.size());
  std::memcpy(block.data() + recording::kChecksumAt, &checksum, sizeof(checksum));
  file_.append(block);
  written_ = {strings_.size(), nodes_.size() - new_node_count_, states_.size()};
}

/// The last block is a small one that says so, however full the file is.
void StreamWriter::close(const std::string& why) {
  block_.clear();
  ByteWriter out;
  out.text(why);
  put(Kind::Cut, out.data());
  open_ = false;
  write_block(block_.data());
  block_.clear();
}

}  // namespace weft
