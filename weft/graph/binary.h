// The versioned binary form of graphs: for caches, pickling, fuzz corpora, export and remote use.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

class ByteReader;
class ByteWriter;

/// Layout: "weft" 0x1a, version byte, varint node count, nodes (each after its sources), varint
/// root count, roots. A node: op id, dtype id; varint lanes, source count, each source as how many
/// nodes back it lies; varint integer count, each zigzag varint; varint text size and text where
/// the op has text. Op and dtype ids are those of ops.def and dtypes.def, which never change.
std::vector<std::byte> write_graph(std::span<const NodeRef> roots);

/// The roots, interned in `graph`; every node is checked first. Damaged or hostile data is an Error
/// naming `what` and the offset; memory is bounded by a small multiple of the data's size.
std::vector<NodeRef> read_graph(Graph& graph, std::span<const std::byte> data,
                                std::string_view what = "graph file");

// ---- one node of it, for formats of other layouts

/// Its number, and those of its sources, which are before it.
void write_node(ByteWriter& out, NodeRef n, uint32_t number, std::span<const uint32_t> sources);

/// A node as it was written: its op and dtype exist, nothing else is checked.
struct StoredNode {
  Op op;
  DType dtype;
  uint16_t lanes;
  std::vector<uint64_t> back;
  std::vector<int64_t> ints;
  std::string_view text;  ///< in what was read

  NodeSpec spec(std::span<const NodeRef> sources) const;  ///< for node_problem() and intern()
};
/// The next one; damaged data is an Error.
void read_stored_node(ByteReader& in, StoredNode& out);

}  // namespace weft
