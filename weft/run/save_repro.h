// WEFT_REPRO: programs that fail are written to files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/crash_note.h"
#include "weft/run/normalise.h"
#include "weft/run/repro_file.h"

namespace weft {

class Buffer;
class Context;

/// The program of `form`, for the caller that holds RunState::mutex; with the data of its inputs
/// where WEFT_REPRO_DATA asks for that. `inputs`: the memory of each slot. Its roots are of the
/// context's graph: it is to be written before the caller lets go of the mutex.
Repro repro_of(Context& context, const NormalForm& form,
               std::span<const std::shared_ptr<Buffer>> inputs, std::string_view failed);

/// Writes it to the directory of WEFT_REPRO; the name follows from the content, so that the same
/// program is one file. Returns the path.
std::string save_repro(Context& context, const Repro& repro);

/// While it lives, `note` says what runs: the process may end in it. Without a note it does
/// nothing. `key` and `text` as CrashNote::begin() has them.
class NotedRun {
 public:
  NotedRun(CrashNote* note, uint64_t key, FunctionRef<std::string()> text) : note_(note) {
    if (note_) note_->begin(key, text);
  }
  ~NotedRun() {
    if (note_) note_->end();
  }
  NotedRun(const NotedRun&) = delete;
  NotedRun& operator=(const NotedRun&) = delete;

 private:
  CrashNote* note_;
};
/// What a repro of it says has failed.
constexpr std::string_view kCrashed = "crash: the process ended while this ran";
/// The program of a graph file (graph/binary.h) over Params.
Repro repro_of(Context& context, std::span<const std::byte> graph,
               std::span<const BoundVariable> variables, std::string_view failed);

}  // namespace weft
