// When the commands of a submission to WEBGPU ran.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/device/device.h"
#include "weft/device/webgpu_session.h"

namespace weft::webgpu {

/// The device's clock is read before the first command and after each: the queue runs one after
/// the other. Adapters that cannot give one span for the submission.
class CommandTimes {
 public:
  /// Of no commands: nothing is done.
  CommandTimes(std::shared_ptr<Session> session, std::span<const Command> commands);

  void mark(Encoder encoder);  ///< a command is recorded, or the first comes next
  void end(Encoder encoder);   ///< so is the last, or nothing follows what failed
  /// When they have been run.
  std::vector<CommandTime> read();

 private:
  std::shared_ptr<Session> session_;
  std::vector<CommandTime> commands_;
  uint64_t begun_ns_ = 0;
  std::vector<Owned<QuerySet>> sets_;
  uint32_t marks_ = 0;
  Owned<BufferHandle> resolved_, staging_;
};

}  // namespace weft::webgpu
