#include "weft/device/webgpu_times.h"

#include <algorithm>

#include "weft/base/spans.h"

namespace weft::webgpu {
namespace {

constexpr uint32_t kSetSize = 4096;  // the most there may be in one

}  // namespace

CommandTimes::CommandTimes(std::shared_ptr<Session> session, std::span<const Command> commands)
    : session_(std::move(session)) {
  if (commands.empty()) return;
  for (const Command& c : commands) commands_.push_back(CommandTime::of(c));
  begun_ns_ = now_ns();
  if (!session_->reads_clock) return;
  QuerySetDescriptor d;
  d.count = kSetSize;
  for (size_t at = 0; at <= commands.size(); at += kSetSize)
    sets_.emplace_back(session_->api.wgpuDeviceCreateQuerySet(session_->device.get(), &d),
                       session_->api.wgpuQuerySetRelease);
  session_->check("wgpuDeviceCreateQuerySet");
}

/// By a pass of its own, in which there is nothing: copies have none.
void CommandTimes::mark(Encoder encoder) {
  if (sets_.empty()) return;
  PassTimestamps stamps;
  stamps.set = sets_[marks_ / kSetSize].get();
  stamps.begin = marks_++ % kSetSize;
  PassDescriptor d;
  d.timestamps = &stamps;
  const Api& api = session_->api;
  const Owned<Pass> pass(api.wgpuCommandEncoderBeginComputePass(encoder, &d),
                         api.wgpuComputePassEncoderRelease);
  api.wgpuComputePassEncoderEnd(pass.get());
  session_->check("wgpuComputePassEncoderEnd");
}

void CommandTimes::end(Encoder encoder) {
  if (marks_ == 0) return;
  const uint64_t bytes = marks_ * sizeof(uint64_t);
  resolved_ = session_->buffer(bytes, kQueryResolve | kCopySrc);
  staging_ = session_->buffer(bytes, kMapRead | kCopyDst);
  for (uint32_t at = 0; at < marks_; at += kSetSize)
    session_->api.wgpuCommandEncoderResolveQuerySet(encoder, sets_[at / kSetSize].get(), 0,
                                                    std::min(kSetSize, marks_ - at),
                                                    resolved_.get(), at * sizeof(uint64_t));
  session_->api.wgpuCommandEncoderCopyBufferToBuffer(encoder, resolved_.get(), 0, staging_.get(), 0,
                                                     bytes);
}

/// The two clocks are paired where the last command ended and the host was told so.
std::vector<CommandTime> CommandTimes::read() {
  const uint64_t now = now_ns();
  if (marks_ == 0) {
    if (commands_.empty()) return {};
    return {{"submission", nullptr, static_cast<int64_t>(commands_.size()), begun_ns_, now}};
  }
  std::lock_guard lock(session_->mutex);
  std::vector<uint64_t> ticks(marks_);
  session_->read(std::as_writable_bytes(std::span(ticks)), staging_);
  const double period = session_->api.wgpuQueueGetTimestampPeriod(session_->queue.get());
  const auto at = [&](size_t mark) {
    const double before = static_cast<double>(ticks.back() - ticks[mark]) * period;
    return std::max(begun_ns_, now - static_cast<uint64_t>(before));
  };
  commands_.resize(marks_ - 1);
  for (size_t i = 0; i < commands_.size(); ++i)
    commands_[i].begin_ns = at(i), commands_[i].end_ns = at(i + 1);
  return std::move(commands_);
}

}  // namespace weft::webgpu
