// StateWriter: graphs and states of an arena of a recording, as records: what is equal, once.
#pragma once

#include <vector>

#include "weft/base/byte_writer.h"
#include "weft/base/call_site.h"
#include "weft/graph/node_map.h"
#include "weft/rewrite/pass_record.h"
#include "weft/run/node_numbers.h"
#include "weft/run/recording.h"

namespace weft {

class Provenance;
class StreamWriter;

/// An arena is a kernel's, or that of all the rest: nodes and states have numbers of its own, so
/// that threads need not meet. One thread at a time.
class StateWriter {
 public:
  /// `strings`: of the names of kernels and of lines, which states of the first arena alone have.
  StateWriter(StreamWriter& strings, uint64_t arena) : strings_(&strings), arena_(arena) {}
  /// Another arena, in the memory of the one before.
  void begin_arena(uint64_t arena);

  /// `lines`: where the user's lines of new nodes are known; or null.
  uint64_t node(NodeRef n, const Provenance* lines = nullptr);
  uint64_t state(const StateParts& parts, const Provenance* lines = nullptr);
  /// A record that may name nodes and states so far.
  void add(recording::Kind kind, std::span<const std::byte> content);
  /// All that was added, in order; then it is empty again.
  const ByteWriter& records();
  void clear_records() { records_.clear(); }

 private:
  std::span<const std::byte> encode(const StateParts& parts, const Provenance* lines);
  void encode_program(const LinearProgram& program);
  void add_new_nodes();
  uint32_t add_node(NodeRef n, const Provenance* lines);
  uint64_t line_of(CallSite site);

  StreamWriter* strings_;
  uint64_t arena_;
  FlatMap<uint64_t, uint64_t> states_;  // by hash of the content
  NodeNumbers nodes_;
  ByteWriter records_, state_, new_nodes_, new_lines_;
  uint64_t new_node_count_ = 0, new_line_count_ = 0;
  CallSite last_site_;  // nodes in a row are of one line
  uint64_t last_line_ = 0;
  struct Frame {
    NodeRef node;
    uint32_t next = 0;  // source
  };
  std::vector<Frame> stack_;
  std::vector<uint32_t> sources_;  // numbers, of all frames
};

}  // namespace weft
