#include "weft/app/app.h"
#include "weft/app/viz_server.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/viz/perfetto.h"
#include "weft/viz/session.h"
#include "weft/viz/views.h"

namespace weft {

namespace {

viz::Parameters parameters_of(const std::vector<std::string>& words) {
  viz::Parameters parameters;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      fail("viz.parameter", "--param is '{}'; it has to be NAME=VALUE, as pass=17", word);
    parameters.set(word.substr(0, equals), word.substr(equals + 1));
  }
  return parameters;
}

}  // namespace

int run_viz(const Session& session, const VizOptions& options) {
  if (!options.command.empty()) return serve_program(session, options);
  if (options.file.empty())
    fail("viz", "no recording is named; give a file, or a program behind --");
  if (options.view == "page" && options.perfetto.empty()) return serve_recording(session, options);
  const auto recording = viz::Session::open(options.file);
  if (!options.perfetto.empty()) {
    atomic_write_file(options.perfetto, viz::perfetto_json(*recording));
    return kExitOk;
  }
  const viz::Parameters parameters = parameters_of(options.parameters);
  const std::string view = options.view.empty() ? "session" : options.view;
  session.write(session.json ? viz::view_json(*recording, view, parameters) + "\n"
                             : viz::view_text(*recording, view, parameters, session.colour));
  return kExitOk;
}

}  // namespace weft
