// The blocks of a recording's bytes.
#pragma once

#include "weft/base/function_ref.h"
#include "weft/viz/session_data.h"

namespace weft::viz {

struct Block {
  uint64_t stream, at;  ///< at: byte of the file
  uint32_t number;
  uint64_t strings;  ///< that the stream's earlier blocks hold
  Bytes records;
};

/// Tells of each block that is whole, in order, and of stretches that are not: a text for people.
/// An Error (viz.file) where there is no block at all or the first is of another version, and
/// (viz.damaged) where so many are damaged that looking for whole ones would take too long.
void each_block(Bytes data, std::string_view what, FunctionRef<void(const Block&)> block,
                FunctionRef<void(uint64_t at, const char* why, const std::string& text)> missing);

}  // namespace weft::viz
