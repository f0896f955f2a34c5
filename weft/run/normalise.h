// Normal form of what is to be realized: buffers become Params by first visit and Binds become
// Variables, so that the same step of a program is the same node every time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/base/small_vector.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"
#include "weft/rewrite/pass.h"
#include "weft/run/known_forms.h"

namespace weft {

struct BoundVariable {
  NodeRef variable;  ///< Op::Variable of the tensor graph
  std::string name;  ///< in the normal form; other than the variable's own when one name stands for
                     ///< two values
  int64_t value;
};

struct NormalForm {
  using Nodes = SmallVector<NodeRef, 8>;
  Nodes asked;              ///< the values as given
  NodeMap<NodeRef> copies;  ///< of every node under them, in the graph normalised into; none where
                            ///< the program was known
  Nodes values;             ///< in the graph normalised into
  NodeRef root = nullptr;   ///< a Sink of them
  Nodes inputs;             ///< Buffer node of each slot
  std::vector<BoundVariable> variables;
  std::vector<NodeRef> seen;  ///< of `watched`, those that were met
  bool calls = false;         ///< whether a function is called in it
};

/// Of the variables with these names, in their order; those that are not bound have none.
std::vector<int64_t> values_of(std::span<const std::string> names,
                               std::span<const BoundVariable> variables);

/// The bodies of calls in normal form. They are closed, so that they are the same wherever they are
/// called, and looked at once.
class KnownBodies {
 public:
  KnownBodies(Graph& from, Graph& to) : from_(from), to_(to) {}
  ~KnownBodies() { clear(); }
  KnownBodies(const KnownBodies&) = delete;
  KnownBodies& operator=(const KnownBodies&) = delete;

  /// Null where it is not known.
  NodeRef find(NodeRef body, DeviceId default_device) const;
  void add(NodeRef body, NodeRef normal, DeviceId default_device);
  void clear();

 private:
  // A program that calls functions of so many nodes, by ever other sizes, starts anew.
  static constexpr size_t kMostNodes = size_t{1} << 16;

  Graph &from_, &to_;
  NodeMap<NodeRef> known_;  // both rooted
  std::vector<std::pair<NodeRef, NodeRef>> held_;
  size_t nodes_ = 0;
  DeviceId default_device_ = 0;
};

/// What a context knows of programs that it met before.
struct KnownPrograms {
  KnownPrograms(Graph& from, Graph& to) : bodies(from, to), forms(from, to) {}
  void clear() { bodies.clear(), forms.clear(); }

  KnownBodies bodies;
  KnownForms forms;
};

/// By structural hash of a value that is computed: that of the node of the normal form it is for.
using Origins = std::unordered_map<uint64_t, uint64_t>;

/// Values on their way to what is scheduled.
struct NormalState {
  Graph& graph;              ///< normalised into
  NormalForm::Nodes values;  ///< as given; in `graph` afterwards
  DeviceId default_device = {};
  std::span<const NodeRef> watched = {};
  KnownPrograms* known = nullptr;
  NormalForm form = {};
  Origins origins = {};

  std::string_view name() const { return "values"; }
  PassView view() const;
  std::string text() const;
  StateParts parts() const;
};

/// In order. The second runs in programs that no cache has.
std::span<const Pass<NormalState>> normalise_passes();

/// Normalises `values` into `graph`, that of `known`. `default_device` is the device that is
/// written as 0. An Error where a variable has no value.
NormalForm normalise(Graph& graph, std::span<const NodeRef> values, DeviceId default_device,
                     std::span<const NodeRef> watched = {}, KnownPrograms* known = nullptr);
/// NormalForm::copies of values that a form is known of.
NodeMap<NodeRef> normal_copies(Graph& graph, std::span<const NodeRef> values,
                               DeviceId default_device);
/// A form's values; in the place of each call stands what it computes.
struct WithoutCalls {
  NormalForm::Nodes values;
  Origins origins;  ///< of what is no node of the form
};
WithoutCalls without_calls(Graph& graph, const NormalForm& form);

}  // namespace weft
