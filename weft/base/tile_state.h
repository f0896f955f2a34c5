// Tile registers: the system keeps them for a process only when it is asked to.
#pragma once

namespace weft {

/// Asks the system to keep the tile registers of this process's threads and children; false where
/// it does not.
bool request_tile_state();

}  // namespace weft
