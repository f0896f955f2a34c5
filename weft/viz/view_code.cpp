// A kernel's machine code: blocks and loops, registers through their lives, estimates, bytes.
#include <algorithm>

#include "weft/base/format.h"
#include "weft/viz/graph_data.h"
#include "weft/viz/kernel_code.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

using codegen::CodeBlock, codegen::CodeLoop, codegen::kNoLoop;

constexpr const char* kFrameUses[] = {"", "reload", "spill"};
constexpr const char* kClasses[] = {"", "general", "vector", "mask", "tile"};
constexpr int64_t kMostLinesShown = 4000;

uint32_t wanted_kernel(const Session::Data& data, const Parameters& parameters) {
  return static_cast<uint32_t>(parameters.position("kernel", data.kernels.size(), "kernels"));
}

std::string hexadecimal(Bytes bytes) {
  std::string out;
  for (const std::byte b : bytes) append_format(out, "{:02x}", static_cast<unsigned>(b));
  return out;
}

/// Of blocks that follow.
std::vector<std::vector<uint32_t>> sources_of(const codegen::ControlFlow& flow) {
  std::vector<std::vector<uint32_t>> out(flow.blocks.size());
  for (uint32_t b = 0; b < flow.blocks.size(); ++b)
    for (const uint32_t next : flow.blocks[b].next) out[next].push_back(b);
  return out;
}

/// " -> B3 B4", marking those that go back.
std::string goes_to(const KernelCode& code, size_t block) {
  std::string out;
  for (const uint32_t next : code.flow.blocks[block].next)
    append_format(out, "{}B{}{}", out.empty() ? " -> " : " ", next, next <= block ? " (back)" : "");
  return out.empty() ? " -> end" : out;
}

/// "B3 .L7: lines 12 to 30, hot loop 2, 19 instructions -> B3 (back) B4".
std::string block_text(const KernelCode& code, size_t block) {
  const CodeBlock& b = code.flow.blocks[block];
  std::string out = strformat("{}: lines {} to {}", code.block_name(block), b.begin, b.end - 1);
  if (b.loop != kNoLoop)
    append_format(out, ", {}loop {}", code.is_hot(block) ? "hot " : "", b.loop);
  return out + goes_to(code, block);
}

// ---- JSON

void write_registers(JsonWriter& json, const KernelCode& code) {
  json.key("registers").begin_array();
  for (const codegen::NamedRegister& r : code.lives.registers)
    json.begin_object()
        .field("name", register_name(r))
        .field("kind", kClasses[static_cast<size_t>(r.kind)])
        .end_object();
  json.end_array().key("lives").begin_array();
  for (const codegen::RegisterLife& l : code.lives.lives)
    json.begin_array().value(l.reg).value(l.first).value(l.last).end_array();
  json.end_array();
}

void write_blocks(JsonWriter& json, const KernelCode& code) {
  json.key("blocks").begin_array();
  for (size_t i = 0; i < code.flow.blocks.size(); ++i) {
    const CodeBlock& b = code.flow.blocks[i];
    json.begin_object().field("block", i).field("name", code.block_name(i));
    json.field("first", b.begin).field("last", b.end - 1);
    id_field(json, "loop", b.loop);
    json.field("hot", code.is_hot(i)).key("next").begin_array();
    for (const uint32_t next : b.next) json.value(next);
    json.end_array().end_object();
  }
  json.end_array();
}

void write_loop(JsonWriter& json, const KernelCode& code, uint32_t i) {
  const CodeLoop& loop = code.flow.loops[i];
  const x86::Estimate& e = code.estimates[i];
  json.begin_object().field("loop", i);
  id_field(json, "parent", loop.parent);
  json.field("depth", loop.depth).field("first", loop.begin).field("last", loop.end - 1);
  json.field("hot", i == code.hot).field("instructions", e.instructions);
  json.field("cycles", e.cycles()).field("chain", e.chain).field("busiest", e.busiest);
  json.field("loaded", e.loaded).field("stored", e.stored).key("ports").begin_array();
  for (const x86::Estimate::Taken& t : e.taken)
    json.begin_object().field("port", t.resource).field("cycles", t.cycles).end_object();
  json.end_array().end_object();
}

void write_line(JsonWriter& json, const KernelCode& code, size_t i) {
  const CodeLine& line = code.lines[i];
  json.begin_object().field("line", i).field("text", code.text(i));
  json.field("offset", line.offset).field("bytes", hexadecimal(code.bytes_of(i)));
  json.field("latency", line.latency).field("port", line.port);
  json.field("frame", kFrameUses[static_cast<size_t>(line.frame)]);
  json.field("registers", code.lives.uses[i]).end_object();
}

// ---- text

std::string loops_text(const KernelCode& code, bool colour) {
  std::string out;
  for (uint32_t i = 0; i < code.flow.loops.size(); ++i) {
    const CodeLoop& loop = code.flow.loops[i];
    const std::string line = strformat("loop {}, lines {} to {}: {}", i, loop.begin, loop.end - 1,
                                       x86::text_of(code.estimates[i]));
    append_format(out, "{}{}\n", std::string(static_cast<size_t>(loop.depth) * 2, ' '),
                  i == code.hot ? styled(colour, "1;31", "hot " + line) : line);
    if (i != code.hot) continue;
    out.append(static_cast<size_t>(loop.depth) * 2 + 2, ' ');
    for (const x86::Estimate::Taken& t : code.estimates[i].taken)
      append_format(out, "{} {:.2f}  ", t.resource, t.cycles);
    out += '\n';
  }
  return out;
}

std::string blocks_text(const KernelCode& code, bool colour) {
  std::string out;
  for (size_t i = 0; i < code.flow.blocks.size(); ++i) {
    const std::string line = block_text(code, i);
    append_format(out, "{}{}\n", std::string(static_cast<size_t>(code.depth(i)) * 2 + 2, ' '),
                  code.is_hot(i) ? styled(colour, "1;31", line) : line);
  }
  return out;
}

/// Names of registers from above to below, over their columns.
std::string header_of_registers(const KernelCode& code, size_t column) {
  std::vector<std::string> names;
  size_t longest = 0;
  for (const codegen::NamedRegister& r : code.lives.registers)
    longest = std::max(longest, names.emplace_back(register_name(r)).size());
  std::string out;
  for (size_t row = 0; row < longest; ++row) {
    out.append(column, ' ');
    for (const std::string& name : names) {
      const size_t skipped = longest - name.size();
      out += row < skipped ? ' ' : name[row - skipped];
    }
    out += '\n';
  }
  return out;
}

std::string line_text(const KernelCode& code, size_t i) {
  const CodeLine& line = code.lines[i];
  const std::string& uses = code.lives.uses[i];
  if (line.bytes == 0)
    return strformat("{:>6} {:>6}  {}  {:<24} {}", i, "", uses, "", code.text(i));
  return strformat("{:>6} {:>6x}  {}  {:<24}   {:<56} ; {:>2} {:<9} {}", i, line.offset, uses,
                   hexadecimal(code.bytes_of(i)), code.text(i), line.latency, line.port,
                   kFrameUses[static_cast<size_t>(line.frame)]);
}

size_t spills_of(const KernelCode& code, FrameUse use) {
  return static_cast<size_t>(std::ranges::count(code.lines, use, &CodeLine::frame));
}

// ---- the graph

/// Blocks as nodes, in the order of the code; edges that go back are those of loops.
class BlockGraph final : public GraphData {
 public:
  explicit BlockGraph(KernelCode code) : code_(std::move(code)) {
    form = "control";
    kind_names = {"block", "hot loop", "loop"};  // colours go by their order
    const auto all = sources_of(code_.flow);
    for (size_t b = 0; b < all.size(); ++b) {
      sources.insert(sources.end(), all[b].begin(), all[b].end());
      begins.push_back(static_cast<uint32_t>(sources.size()));
      kinds.push_back(code_.is_hot(b) ? 1 : code_.depth(b) > 0 ? 2 : 0);
    }
  }

  std::string label(size_t b) const override {
    const CodeBlock& block = code_.flow.blocks[b];
    std::string out = strformat("B{}: {} lines", b, block.end - block.begin);
    if (code_.is_hot(b)) append_format(out, ", {:.1f} cycles", code_.estimates[code_.hot].cycles());
    for (const uint32_t next : block.next)
      if (next <= b) out += next == b ? ", repeats" : strformat(", back to B{}", next);
    return out;
  }
  std::string text(size_t b) const override {
    return std::string(static_cast<size_t>(code_.depth(b)) * 2, ' ') + block_text(code_, b);
  }
  std::string detail(size_t b) const override {
    const CodeBlock& block = code_.flow.blocks[b];
    std::string out;
    for (uint32_t i = block.begin; i < std::min(block.end, block.begin + 400); ++i)
      append_format(out, "{}\n", code_.text(i));
    return out;
  }

 private:
  KernelCode code_;
};

}  // namespace

std::unique_ptr<GraphData> control_flow_graph(const Session::Data& data,
                                              const Parameters& parameters) {
  const uint32_t kernel = wanted_kernel(data, parameters);
  auto out = std::make_unique<BlockGraph>(kernel_code(data, kernel));
  out->title = strformat("control flow of kernel {}, {}", kernel, data.kernels[kernel].name);
  return out;
}

std::string view_code(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const uint32_t kernel = wanted_kernel(data, parameters);
  const KernelCode code = kernel_code(data, kernel);
  const Page page = page_of(parameters, code.lines.size(), kMostLinesShown);
  JsonWriter json;
  json.begin_object().field("kernel", kernel).field("name", data.kernels[kernel].name);
  json.field("frame_bytes", code.frame_bytes).field("in_memory", code.in_memory);
  json.field("rematerialised", code.rematerialised);
  json.field("spills", spills_of(code, FrameUse::Spill));
  json.field("reloads", spills_of(code, FrameUse::Reload));
  json.field("estimate", x86::estimate_source(code.core));
  write_registers(json, code);
  write_blocks(json, code);
  json.key("loops").begin_array();
  for (uint32_t i = 0; i < code.flow.loops.size(); ++i) write_loop(json, code, i);
  json.end_array().field("total", code.lines.size()).key("lines").begin_array();
  for (size_t i = page.first; i < page.end; ++i) write_line(json, code, i);
  return json.end_array().end_object().take();
}

std::string text_code(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const uint32_t kernel = wanted_kernel(data, parameters);
  const KernelCode code = kernel_code(data, kernel);
  const Page page = page_of(parameters, code.lines.size(), kMostLinesShown);
  std::string out = styled(colour, "1", printable(data.kernels[kernel].name));
  append_format(out,
                ": {} values in memory ({} spills, {} reloads), {} computed again, {} bytes of "
                "frame\ncycles are {}\n{}\n",
                code.in_memory, spills_of(code, FrameUse::Spill), spills_of(code, FrameUse::Reload),
                code.rematerialised, code.frame_bytes, x86::estimate_source(code.core),
                loops_text(code, colour));
  append_format(out, "{}\n{}", blocks_text(code, colour), header_of_registers(code, 15));
  for (size_t i = page.first; i < page.end; ++i) {
    std::string line = line_text(code, i);
    line.erase(line.find_last_not_of(' ') + 1);
    const CodeLine& l = code.lines[i];
    out += l.frame == FrameUse::None ? line : styled(colour, "33", line);
    out += '\n';
  }
  if (page.end < code.lines.size())
    append_format(out, "... {} more lines\n", code.lines.size() - page.end);
  return out;
}

}  // namespace weft::viz
