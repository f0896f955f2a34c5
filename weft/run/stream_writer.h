// StreamWriter: a process's blocks of a recording, with its table of strings.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "weft/base/append_file.h"
#include "weft/base/byte_writer.h"
#include "weft/graph/node_map.h"
#include "weft/rewrite/pass.h"
#include "weft/run/recording.h"

namespace weft {

class Context;
class StateWriter;

/// One thread at a time. What is equal is written once.
class StreamWriter {
 public:
  StreamWriter(Context& context, std::string path, uint64_t most_bytes);

  uint64_t stream() const { return stream_; }
  const std::string& path() const { return file_.path(); }
  /// False once the file was full, or did not take what was written: nothing is written any more.
  bool open() const { return open_; }

  /// The number of a text, or of what else, which is written where it is new.
  uint64_t string(std::string_view text);
  uint64_t rule(const Rule& rule);
  uint64_t new_kernel() { return kernels_++; }

  /// Begins a record; the caller fills in what is returned and calls end(). Numbers of strings and
  /// the like may be asked for meanwhile.
  ByteWriter& begin() { return record_.clear(), record_; }
  void end(recording::Kind kind);
  /// A record of many small parts, which is put together elsewhere.
  void add(recording::Kind kind, std::span<const std::byte> content);
  /// What it has made so far.
  void add(StateWriter& states);
  void flush();
  /// Writes what there is; nothing more is written.
  void finish();
  /// After a fork(), in the child: a stream of its own.
  void restart();

 private:
  void describe_process();
  void put(recording::Kind kind, std::span<const std::byte> content);
  void begin_block();
  void write_block();
  void close(const std::string& why);

  Context& context_;
  AppendFile file_;
  uint64_t most_bytes_;
  bool open_ = true;
  uint64_t stream_ = 0;
  uint32_t blocks_ = 0;
  uint64_t written_strings_ = 0;  // by earlier blocks
  uint64_t kernels_ = 0;
  FlatMap<uint64_t, uint64_t> strings_;  // by hash of the text
  FlatMap<const Rule*, uint64_t> rules_;
  ByteWriter record_, block_;  // a block with its header
};

}  // namespace weft
