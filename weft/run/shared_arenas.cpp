#include "weft/run/shared_arenas.h"

#include <algorithm>

#include "weft/run/bind.h"

namespace weft {

std::shared_ptr<const int64_t> SharedArena::need(int64_t bytes) {
  auto need = std::make_shared<const int64_t>(bytes);
  needs_.push_back(need);
  more_ = true;
  return need;
}

/// What was there goes first: there may be room for one of them alone.
Buffer& SharedArena::memory(size_t holders) {
  if (memory_ && !more_ && holders == needs_.size()) return *memory_;
  int64_t most = 0;
  std::erase_if(needs_, [&](const std::weak_ptr<const int64_t>& weak) {
    const auto need = weak.lock();
    if (need) most = std::max(most, *need);
    return need == nullptr;
  });
  if (memory_ && (memory_->bytes() < most || memory_->bytes() / 2 > most)) memory_.reset();
  if (!memory_) memory_ = device_->allocate(most, "arena of intermediates");
  more_ = false;
  return *memory_;
}

std::shared_ptr<SharedArena> SharedArenas::get(Device& device, size_t number) {
  std::erase_if(arenas_, [](const auto& a) { return a.second.expired(); });
  for (const auto& [n, weak] : arenas_)
    if (const auto arena = weak.lock(); arena && n == number && &arena->device() == &device)
      return arena;
  auto made = std::make_shared<SharedArena>(device);
  arenas_.emplace_back(number, made);
  return made;
}

ArenaShares::ArenaShares(const PlannedMemory& plan, SharedArenas& all, StepLines lines) {
  for (size_t a = 0; a < plan.arenas.size(); ++a) {
    const ArenaPlan& arena = plan.arenas[a];
    const auto number =
        std::count_if(plan.arenas.begin(), plan.arenas.begin() + static_cast<std::ptrdiff_t>(a),
                      [&](const ArenaPlan& other) { return other.device == arena.device; });
    Share share{all.get(*arena.device, static_cast<size_t>(number)), {}, {}};
    share.need = share.arena->need(arena.memory.bytes);
    explain_failure(arena, lines, [&] { share.memory(); });
    place_in(plan, arena, nullptr,
             [&](int buffer, BufferSlice slice) { share.places.emplace_back(buffer, slice); });
    shares_.push_back(std::move(share));
  }
}

void ArenaShares::place(std::span<BufferSlice> memory) {
  for (Share& share : shares_) {
    Buffer& now = share.memory();
    if (now.serial() == share.placed_in) continue;
    for (auto [buffer, slice] : share.places) {
      slice.buffer = &now;
      memory[static_cast<size_t>(buffer)] = slice;
    }
    share.placed_in = now.serial();
  }
}

int64_t ArenaShares::bytes() const {
  int64_t all = 0;
  for (const Share& share : shares_) all += *share.need;
  return all;
}

}  // namespace weft
