#include "weft/graph/binary.h"

#include <array>

#include "weft/base/byte_writer.h"
#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/base/varints.h"
#include "weft/graph/node_map.h"
#include "weft/graph/schema.h"
#include "weft/graph/verify.h"

namespace weft {
namespace {

constexpr std::array<uint8_t, 5> kMagic = {'w', 'e', 'f', 't', 0x1a};
constexpr uint8_t kVersion = 1;
// Op, dtype, lanes, and the counts of sources and integers.
constexpr size_t kLeastNodeBytes = 5;

void write_nodes(ByteWriter& out, const Toposort& order, NodeMap<uint32_t>& positions) {
  std::vector<uint32_t> sources;
  for (NodeRef n : order) {
    const auto position = static_cast<uint32_t>(positions.size());
    sources.clear();
    for (NodeRef s : n->src()) sources.push_back(positions.at(s));
    write_node(out, n, position, sources);
    positions[n] = position;
  }
}

class Reader {
 public:
  Reader(Graph& graph, std::span<const std::byte> data, std::string_view what)
      : graph_(graph), in_(data, what) {}

  std::vector<NodeRef> read() {
    read_header();
    const size_t count = in_.count(in_.varint(), kLeastNodeBytes);
    nodes_.reserve(count);
    for (size_t i = 0; i < count; ++i) nodes_.push_back(read_node());
    std::vector<NodeRef> roots(in_.count(in_.varint(), 1));
    for (NodeRef& root : roots) root = source(in_.varint());
    if (!in_.done()) damaged("{} bytes follow the last root", in_.remaining());
    return roots;
  }

 private:
  template <class... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> pattern, Args&&... args) const {
    fail("graph_file", "{}: offset {}: {}; the file is damaged or not a graph file", in_.what(),
         in_.offset(), strformat(pattern, std::forward<Args>(args)...));
  }

  void read_header() {
    for (const uint8_t expected : kMagic)
      if (in_.u8() != expected) damaged("it does not begin with \"weft\"");
    const uint8_t version = in_.u8();
    if (version != kVersion)
      fail("graph_file", "{}: version {} of the format; this program reads version {}", in_.what(),
           version, kVersion);
  }

  NodeRef source(uint64_t back) const {
    if (back == 0 || back > nodes_.size()) damaged("a source lies {} nodes back", back);
    return nodes_[nodes_.size() - back];
  }

  NodeRef read_node() {
    read_stored_node(in_, stored_);
    src_.clear();
    for (const uint64_t back : stored_.back) src_.push_back(source(back));
    const NodeSpec spec = stored_.spec(src_);
    // Its id would be that of some memory of this process.
    if (spec.op == Op::Buffer) damaged("a file holds no memory");
    if (const char* problem = node_problem(spec))
      damaged("{}: {}", info(spec.op).mnemonic, problem);
    return graph_.intern(spec);
  }

  Graph& graph_;
  ByteReader in_;
  std::vector<NodeRef> nodes_;
  StoredNode stored_;
  std::vector<NodeRef> src_;
};

}  // namespace

void write_node(ByteWriter& out, NodeRef n, uint32_t number, std::span<const uint32_t> sources) {
  std::byte* at = out.room(2 + kLongestVarint * (3 + n->nsrc + n->nints));
  *at++ = static_cast<std::byte>(n->op);
  *at++ = static_cast<std::byte>(n->dtype);
  at = put_varint(at, n->lanes);
  at = put_varint(at, n->nsrc);
  for (const uint32_t source : sources) at = put_varint(at, number - source);
  at = put_varint(at, n->nints);
  for (const int64_t v : n->ints()) at = put_varint(at, zigzag(v));
  out.filled_to(at);
  if (schema(n->op).text) out.text(n->text());
}

NodeSpec StoredNode::spec(std::span<const NodeRef> sources) const {
  return {op, dtype, sources, ints, text, lanes};
}

void read_stored_node(ByteReader& in, StoredNode& out) {
  const auto damaged = [&in](const std::string& what) {
    fail("graph_file", "{}: offset {}: {}; the file is damaged or not a graph file", in.what(),
         in.offset(), what);
  };
  const uint8_t op = in.u8();
  if (!is_op_id(op)) damaged(strformat("{} is no op", op));
  const uint8_t dtype_id = in.u8();
  const auto dtype = dtype_from_id(dtype_id);
  if (!dtype) damaged(strformat("{} is no dtype", dtype_id));
  const uint64_t lanes = in.varint();
  if (lanes > UINT16_MAX) damaged(strformat("a value of {} lanes", lanes));
  out.op = static_cast<Op>(op);
  out.dtype = *dtype;
  out.lanes = static_cast<uint16_t>(lanes);
  out.back.resize(in.count(in.varint(), 1));
  for (uint64_t& b : out.back) b = in.varint();
  out.ints.resize(in.count(in.varint(), 1));
  for (int64_t& v : out.ints) v = unzigzag(in.varint());
  out.text = schema(out.op).text ? in.text(in.varint()) : std::string_view();
}

std::vector<std::byte> write_graph(std::span<const NodeRef> roots) {
  ByteWriter out;
  for (const uint8_t b : kMagic) out.u8(b);
  out.u8(kVersion);
  const Toposort order(roots);
  out.varint(order.size());
  NodeMap<uint32_t> positions(order.size());
  write_nodes(out, order, positions);
  out.varint(roots.size());
  for (NodeRef n : roots) out.varint(order.size() - positions.at(n));
  return out.take();
}

std::vector<NodeRef> read_graph(Graph& graph, std::span<const std::byte> data,
                                std::string_view what) {
  const Graph::Building building(graph);
  return Reader(graph, data, what).read();
}

}  // namespace weft
