#include "weft/run/state_writer.h"

#include "weft/base/hash.h"
#include "weft/graph/binary.h"
#include "weft/graph/provenance.h"
#include "weft/run/stream_writer.h"

namespace weft {

using recording::Kind;

namespace {

void put(ByteWriter& out, Kind kind, std::span<const std::byte> head,
         std::span<const std::byte> content) {
  out.u8(static_cast<uint8_t>(kind));
  out.varint(head.size() + content.size());
  out.bytes(head);
  out.bytes(content);
}

}  // namespace

void StateWriter::begin_arena(uint64_t arena) {
  arena_ = arena;
  states_.clear();
  nodes_.clear();
  for (ByteWriter* w : {&records_, &new_nodes_, &new_lines_}) w->clear();
  new_node_count_ = new_line_count_ = 0;
  last_site_ = {};
}

uint64_t StateWriter::node(NodeRef root, const Provenance* lines) {
  if (const uint32_t known = nodes_.find(root); known != NodeNumbers::kNone) return known;
  stack_.assign(1, {root});
  sources_.clear();
  while (true) {
    Frame& f = stack_.back();
    if (f.next < f.node->nsrc) {
      NodeRef source = f.node->src(f.next);
      if (const uint32_t known = nodes_.find(source); known != NodeNumbers::kNone)
        sources_.push_back(known), ++f.next;
      else
        stack_.push_back({source});
      continue;
    }
    const uint32_t number = add_node(f.node, lines);
    stack_.pop_back();
    if (stack_.empty()) return number;
    sources_.push_back(number);
    ++stack_.back().next;
  }
}

/// The numbers of its sources are the last ones of sources_.
uint32_t StateWriter::add_node(NodeRef n, const Provenance* lines) {
  const auto number = static_cast<uint32_t>(nodes_.size());
  write_node(new_nodes_, n, number, std::span(sources_).last(n->nsrc));
  sources_.resize(sources_.size() - n->nsrc);
  ++new_node_count_;
  if (const CallSite site = lines ? lines->find(n) : CallSite{}) {
    new_lines_.varint(number);
    new_lines_.varint(line_of(site));
    ++new_line_count_;
  }
  nodes_.add(n);
  return number;
}

uint64_t StateWriter::line_of(CallSite site) {
  if (site.file != last_site_.file || site.line != last_site_.line) {
    last_line_ = strings_->string(short_text(site));
    last_site_ = site;
  }
  return last_line_;
}

uint64_t StateWriter::state(const StateParts& parts, const Provenance* lines) {
  if (parts.kind == StateParts::Kind::None) return 0;
  const std::span<const std::byte> content = encode(parts, lines);
  const auto form = static_cast<uint8_t>(parts.kind);
  const uint64_t key = hash_bytes(content.data(), content.size(), form) | 1;
  if (const uint64_t* known = states_.find(key)) return *known;
  const uint64_t number = states_.size() + 1;
  states_.set(key, number);
  add_new_nodes();
  ByteWriter head;
  head.varint(arena_);
  head.varint(number);
  head.u8(form);
  put(records_, Kind::State, head.data(), content);
  return number;
}

std::span<const std::byte> StateWriter::encode(const StateParts& parts, const Provenance* lines) {
  state_.clear();
  switch (parts.kind) {
    case StateParts::Kind::Graph:
      state_.varint(parts.nodes.size());
      for (NodeRef n : parts.nodes) state_.varint(node(n, lines));
      break;
    case StateParts::Kind::Kernels:
      state_.varint(parts.nodes.size());
      for (size_t i = 0; i < parts.nodes.size(); ++i) {
        state_.varint(strings_->string(parts.names[i]));
        state_.varint(node(parts.nodes[i]));
      }
      break;
    case StateParts::Kind::Program: encode_program(*parts.program); break;
    default: return std::as_bytes(std::span(parts.bytes));
  }
  return state_.data();
}

// text name; params: count, each u8 dtype, u8 read | written << 1; variables: count, nodes; size of
// the core range: node + 1 or 0; u8 grouped, grid: three nodes + 1 or 0, group: three varints; f64
// flops, f64 bytes; instructions: count, each zigzag of its node less the one before.
void StateWriter::encode_program(const LinearProgram& p) {
  ByteWriter& out = state_;
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

void StateWriter::add_new_nodes() {
  ByteWriter head;
  if (new_node_count_ > 0) {
    head.varint(arena_);
    head.varint(nodes_.size() - new_node_count_);
    head.varint(std::exchange(new_node_count_, 0));
    put(records_, Kind::Nodes, head.data(), new_nodes_.data());
    new_nodes_.clear();
  }
  if (new_line_count_ > 0) {
    head.clear();
    head.varint(arena_);
    head.varint(std::exchange(new_line_count_, 0));
    put(records_, Kind::Lines, head.data(), new_lines_.data());
    new_lines_.clear();
  }
}

void StateWriter::add(Kind kind, std::span<const std::byte> content) {
  add_new_nodes();
  put(records_, kind, {}, content);
}

const ByteWriter& StateWriter::records() {
  add_new_nodes();
  return records_;
}

}  // namespace weft
