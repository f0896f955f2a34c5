// A session's spans as a trace file for ui.perfetto.dev and chrome://tracing.
#pragma once

#include <string>

#include "weft/viz/session.h"

namespace weft::viz {

/// JSON in the Trace Event Format (Google, "Trace Event Format", 2016): complete events in
/// microseconds since the session began, and the names of processes and tracks.
std::string perfetto_json(const Session& session);

}  // namespace weft::viz
