// What is said where a mapped file was cut short while it was read. Only the command does this: a
// library installs no handlers.
#pragma once

namespace weft {

/// From now on SIGBUS in a mapped file ends the process with the file's name on standard error and
/// kExitFailure. Elsewhere it is what it was.
void explain_bus_errors();

}  // namespace weft
