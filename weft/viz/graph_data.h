// GraphData: a graph of a session as arrays, for whoever draws it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft::viz {

class Session;
class Parameters;

constexpr uint32_t kNoLayer = UINT32_MAX;

enum class Mark : uint8_t { None, Same, Added, Removed, Changed };

/// Nodes come after their sources, where the graph has no loops. Texts are made when asked for.
class GraphData {
 public:
  virtual ~GraphData() = default;

  std::string form;   ///< "graph", "program", "dataflow", "control"
  std::string title;  ///< for people
  /// The sources of node i: sources[begins[i]] .. sources[begins[i + 1] - 1], by node.
  std::vector<uint32_t> begins = {0}, sources;
  std::vector<uint16_t> kinds;  ///< of node i, into `kind_names`: what colours go by
  std::vector<std::string> kind_names;
  std::vector<Mark> marks;  ///< of each node, or none

  /// The layer of the network that each node belongs to, into `layer_names`, or kNoLayer; empty
  /// where none is known.
  std::vector<uint32_t> layers;
  std::vector<std::string> layer_names;

  size_t size() const { return begins.size() - 1; }
  virtual std::string dtype(size_t) const { return ""; }
  virtual std::string shape(size_t) const { return ""; }
  virtual std::string label(size_t) const = 0;                    ///< short: "add f32 (8, 64)"
  virtual std::string text(size_t) const = 0;                     ///< a line: "%7 = add f32 %3 %4"
  virtual std::string detail(size_t i) const { return text(i); }  ///< lines: of one alone
  virtual std::string line(size_t) const { return ""; }           ///< the user's
  std::string layer(size_t i) const {
    return layers.empty() || layers[i] == kNoLayer ? "" : layer_names[layers[i]];
  }
  virtual int64_t kernel(size_t) const { return -1; }
  virtual int64_t lanes(size_t) const { return 1; }
  virtual int64_t bytes(size_t) const { return 0; }
  virtual int64_t ns(size_t) const { return 0; }
  /// Makes what texts take long to be made from; other threads may ask for some meanwhile.
  virtual void prepare() const {}
  /// Whether labels, shapes and texts take no longer than it takes to write them.
  virtual bool has_texts_at_hand() const { return true; }
};

/// What the parameters of the view `graph` ask for; an Error with a code viz.* where that is not
/// there. The session must outlive it.
std::unique_ptr<GraphData> graph_data(const Session& session, const Parameters& parameters);

}  // namespace weft::viz
