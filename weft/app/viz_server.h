// `weft viz`: the page of a recording, of one that is there or of a program that is started.
#pragma once

#include <string>
#include <vector>

#include "weft/app/commands.h"

namespace weft {

/// Serves a recording until Ctrl-C; a browser is opened where there is a display.
int serve_recording(const Session& session, const VizOptions& options);
/// Starts options.command with WEFT_VIZ=1, writing to options.file (a new one where that is empty),
/// and serves what it has written so far, while it runs and after.
int serve_program(const Session& session, VizOptions options);

}  // namespace weft
