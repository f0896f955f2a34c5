// WEFT_REPRO: programs that fail are written to files.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weft/run/normalise.h"
#include "weft/run/repro_file.h"

namespace weft {

class Buffer;
class Context;

/// The program of `form`, for the caller that holds RunState::mutex; with the data of its inputs
/// where WEFT_REPRO_DATA asks for that. `inputs`: the memory of each slot.
Repro repro_of(Context& context, const NormalForm& form,
               std::span<const std::shared_ptr<Buffer>> inputs, std::string_view failed);

/// Writes it to the directory of WEFT_REPRO; the name follows from the content, so that the same
/// program is one file. Returns the path.
std::string save_repro(Context& context, const Repro& repro);

}  // namespace weft
