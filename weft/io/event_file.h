// EventFile: curves of a training as TensorBoard reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/append_file.h"
#include "weft/base/byte_writer.h"

namespace weft {

/// A file of events in a folder that `tensorboard --logdir FOLDER` is given, made where it is
/// missing. Errors (file.write): the folder or the file cannot be written.
///   EventFile events("runs/1");
///   events.scalar("train/loss", loss, step);
class EventFile {
 public:
  explicit EventFile(const std::string& folder);
  ~EventFile();  ///< writes the rest, or leaves it where that fails
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// A point of the curve of that name, in single precision, at the time of now.
  void scalar(std::string_view tag, double value, int64_t step);
  /// What was not written yet; also done every few kilobytes and seconds.
  void flush();
  const std::string& path() const { return file_->path(); }

 private:
  void event(std::span<const std::byte> fields);

  std::unique_ptr<AppendFile> file_;
  ByteWriter waiting_;
  uint64_t written_ns_ = 0;
};

}  // namespace weft
