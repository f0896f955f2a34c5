// Programs that are recorded, and what tests ask of their sessions.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/io/scratch_dir.h"
#include "weft/base/options.h"
#include "weft/viz/session.h"
#include "weft/viz/views.h"

namespace weft::viz {

using Json = nlohmann::json;

/// Options that record to a file.
Options recording_to(const std::string& file, const std::string& device = "CPU");
/// A training step of a small network on pictures of 28 x 28, as of Fashion-MNIST, in a context of
/// its own.
void train_a_step(const Options& options);
/// Sums and exponentials of a few numbers, realized.
void compute_little(const Options& options);

/// One pass over a graph of that many nodes, each of two of the thousand before it; nothing runs.
void record_a_large_pass(const Options& options, size_t nodes);
/// Parameters with which a view has something to show of a recorded step.
Parameters sample_of(const View& view, const Session& session);

class RecordedTest : public ScratchDir {
 protected:
  std::string file() const { return at("session.weftviz"); }
  Json ask(const std::string& view, const Parameters& parameters = {}) const {
    return Json::parse(view_json(*Session::open(file()), view, parameters));
  }
  std::string text(const std::string& view, const Parameters& parameters = {}) const {
    return view_text(*Session::open(file()), view, parameters, false);
  }
};

}  // namespace weft::viz
