#include "weft/run/load.h"

#include "weft/base/error.h"
#include "weft/base/hash.h"

namespace weft {
namespace {

void load(LoadState& s) {
  s.loaded = s.device.load(s.sources);
  WEFT_CHECK(s.loaded.size() == s.sources.size(), "{} loaded {} of {} kernels", s.device.name(),
             s.loaded.size(), s.sources.size());
}

constexpr Pass<LoadState> kPasses[] = {
    {"load.programs", "compiled where they were text, and in the device's memory", load},
};

}  // namespace

PassView LoadState::view() const {
  return {static_cast<int64_t>(sources.size()), hash_text(text())};
}

std::string LoadState::text() const {
  std::string out;
  for (size_t i = 0; i < sources.size(); ++i) {
    out += sources[i].entry;
    if (i < loaded.size()) append_format(out, " {} bytes", loaded[i]->code_bytes());
    out += '\n';
  }
  return out;
}

std::span<const Pass<LoadState>> load_passes() { return kPasses; }

std::vector<std::unique_ptr<Executable>> load_programs(Device& device,
                                                       std::span<const ProgramSource> sources) {
  LoadState state{device, sources};
  run_passes(load_passes(), state);
  return std::move(state.loaded);
}

}  // namespace weft
