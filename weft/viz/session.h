// Session: what a recording holds, read and checked, ready to be asked.
#pragma once

#include <memory>
#include <span>
#include <string>

namespace weft::viz {

/// A recording. Const access from several threads is safe.
class Session {
 public:
  /// Maps a file. An Error (viz.file) where it is no recording at all; what is torn or damaged is
  /// left out and listed by the view `session`. A program may still be writing it: what is complete
  /// now is read.
  static std::unique_ptr<const Session> open(const std::string& path);
  /// The same of bytes, which are copied where they have to be.
  static std::unique_ptr<const Session> read(std::span<const std::byte> data, std::string what);
  ~Session();

  /// Whether the file has grown since: then open() it again.
  bool stale() const;
  const std::string& path() const;

  struct Data;  ///< session_data.h, for this room
  const Data& data() const { return *data_; }

 private:
  explicit Session(std::unique_ptr<const Data> data);
  std::unique_ptr<const Data> data_;
};

}  // namespace weft::viz
