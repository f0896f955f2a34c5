#include "weft/graph/binary.h"

#include <array>

#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/graph/node_map.h"
#include "weft/graph/schema.h"
#include "weft/graph/verify.h"

namespace weft {
namespace {

constexpr std::array<uint8_t, 5> kMagic = {'w', 'e', 'f', 't', 0x1a};
constexpr uint8_t kVersion = 1;
// Op, dtype, lanes, and the counts of sources and integers.
constexpr size_t kLeastNodeBytes = 5;

uint64_t zigzag(int64_t v) {
  return static_cast<uint64_t>(v) << 1 ^ static_cast<uint64_t>(v >> 63);
}
int64_t unzigzag(uint64_t v) { return static_cast<int64_t>(v >> 1 ^ (0 - (v & 1))); }

class Writer {
 public:
  void byte(uint8_t b) { out_.push_back(static_cast<std::byte>(b)); }
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) byte(static_cast<uint8_t>(v | 0x80));
    byte(static_cast<uint8_t>(v));
  }
  void text(std::string_view t) {
    varint(t.size());
    for (const char c : t) byte(static_cast<uint8_t>(c));
  }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

void write_node(Writer& w, NodeRef n, size_t position, const NodeMap<size_t>& positions) {
  w.byte(static_cast<uint8_t>(n->op));
  w.byte(static_cast<uint8_t>(n->dtype));
  w.varint(n->lanes);
  w.varint(n->nsrc);
  for (NodeRef s : n->src()) w.varint(position - positions.at(s));
  w.varint(n->nints);
  for (const int64_t v : n->ints()) w.varint(zigzag(v));
  if (schema(n->op).text) w.text(n->text());
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
    for (NodeRef& root : roots) root = read_source();
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

  NodeRef read_source() {
    const uint64_t back = in_.varint();
    if (back == 0 || back > nodes_.size()) damaged("a source lies {} nodes back", back);
    return nodes_[nodes_.size() - back];
  }

  NodeRef read_node() {
    const uint8_t op = in_.u8();
    if (!is_op_id(op)) damaged("{} is no op", op);
    const uint8_t dtype_id = in_.u8();
    const auto dtype = dtype_from_id(dtype_id);
    if (!dtype) damaged("{} is no dtype", dtype_id);
    NodeSpec spec{static_cast<Op>(op), *dtype, {}};
    const uint64_t lanes = in_.varint();
    if (lanes > UINT16_MAX) damaged("a value of {} lanes", lanes);
    spec.lanes = static_cast<uint16_t>(lanes);
    src_.resize(in_.count(in_.varint(), 1));
    for (NodeRef& s : src_) s = read_source();
    ints_.resize(in_.count(in_.varint(), 1));
    for (int64_t& v : ints_) v = unzigzag(in_.varint());
    if (schema(spec.op).text) spec.text = in_.text(in_.varint());
    spec.src = src_;
    spec.ints = ints_;
    // Its id would be that of some memory of this process.
    if (spec.op == Op::Buffer) damaged("a file holds no memory");
    if (const char* problem = node_problem(spec))
      damaged("{}: {}", info(spec.op).mnemonic, problem);
    return graph_.intern(spec);
  }

  Graph& graph_;
  ByteReader in_;
  std::vector<NodeRef> nodes_;
  std::vector<NodeRef> src_;
  std::vector<int64_t> ints_;
};

}  // namespace

std::vector<std::byte> write_graph(std::span<const NodeRef> roots) {
  Writer w;
  for (const uint8_t b : kMagic) w.byte(b);
  w.byte(kVersion);
  const Toposort order(roots);
  w.varint(order.size());
  NodeMap<size_t> positions(order.size());
  for (NodeRef n : order) {
    const size_t position = positions.size();
    write_node(w, n, position, positions);
    positions[n] = position;
  }
  w.varint(roots.size());
  for (NodeRef n : roots) w.varint(order.size() - positions.at(n));
  return w.take();
}

std::vector<NodeRef> read_graph(Graph& graph, std::span<const std::byte> data,
                                std::string_view what) {
  const Graph::Building building(graph);
  return Reader(graph, data, what).read();
}

}  // namespace weft
