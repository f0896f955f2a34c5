#include "weft/run/known_forms.h"

#include <algorithm>

#include "weft/base/hash.h"
#include "weft/base/small_vector.h"
#include "weft/graph/tuple.h"
#include "weft/run/normalise.h"

namespace weft {

/// A node of a program, without what it does not share with others like it.
namespace {

/// Sources that decide what a value is and are not followed: bodies of loops. A function's value is
/// its results; what it was made of may be the memory of state, which would not be the state's own
/// while a form keeps it alive.
std::span<const NodeRef> bodies_of(NodeRef n) {
  return n->op == Op::Function ? std::span<const NodeRef>() : closed_sources(n);
}

}  // namespace

struct KnownForms::Step {
  Op op;
  DType dtype;
  uint16_t lanes;
  uint32_t sources, evaluated;  // counts: all, and those that are steps
  uint32_t bodies;              // count
  uint32_t ints, text;          // counts

  bool fits(NodeRef n) const {
    return n->op == op && n->dtype == dtype && n->lanes == lanes && n->nsrc == sources &&
           n->nints == ints && n->text_size == text;
  }
  /// Which buffer it is differs.
  size_t own_ints() const { return op == Op::Buffer ? 1 : 0; }
};

struct KnownForms::Form {
  DeviceId default_device;
  std::vector<Step> steps;  // each after its sources
  // Of all steps, from the last to the first, as a walk meets them.
  std::vector<uint32_t> sources;  // steps
  std::vector<NodeRef> closed;    // sources that are not evaluated; rooted
  std::vector<int64_t> ints;
  std::string text;

  std::vector<uint32_t> asked, inputs, binds;  // steps
  std::vector<std::string> names;              // of what is bound
  std::vector<NodeRef> values;                 // in normal form
  NodeRef root;                                // rooted, and so are they
  bool calls;
};

/// Follows a program, from what is asked for to its inputs.
class KnownForms::Walk {
 public:
  explicit Walk(const Form& form) : form_(form), nodes_(form.steps.size(), nullptr) {}

  bool follows(std::span<const NodeRef> values) {
    if (values.size() != form_.asked.size()) return false;
    for (size_t i = 0; i < values.size(); ++i)
      if (!is_at(form_.asked[i], values[i])) return false;
    for (size_t i = form_.steps.size(); i-- > 0;)
      if (!step(form_.steps[i], nodes_[i])) return false;
    return are_distinct(form_.inputs) && are_distinct(form_.binds);
  }
  NodeRef node(uint32_t step) const { return nodes_[step]; }

 private:
  bool is_at(uint32_t step, NodeRef n) {
    if (nodes_[step]) return nodes_[step] == n;
    nodes_[step] = n;
    return true;
  }

  bool step(const Step& s, NodeRef n) {
    const uint32_t* sources = form_.sources.data() + sources_;
    const NodeRef* closed = form_.closed.data() + closed_;
    const int64_t* ints = form_.ints.data() + ints_;
    const char* text = form_.text.data() + text_;
    sources_ += s.evaluated, closed_ += s.bodies, ints_ += s.ints, text_ += s.text;
    if (!n) return true;  // a value that something is bound to, and nothing else
    if (!s.fits(n)) return false;
    const std::span<const int64_t> own = n->ints();
    for (size_t i = s.own_ints(); i < own.size(); ++i)
      if (own[i] != ints[i]) return false;
    if (s.text > 0 && n->text() != std::string_view(text, s.text)) return false;
    const size_t followed = s.op == Op::Bind ? 1 : s.evaluated;
    for (size_t i = 0; i < followed; ++i)
      if (!is_at(sources[i], n->src(i))) return false;
    return std::ranges::equal(bodies_of(n), std::span(closed, s.bodies));
  }

  /// One buffer twice is another program, and so is a variable that has one value twice.
  bool are_distinct(std::span<const uint32_t> steps) const {
    constexpr size_t kFew = 3;
    if (steps.size() <= kFew) {
      for (size_t i = 1; i < steps.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (nodes_[steps[i]] == nodes_[steps[j]]) return false;
      return true;
    }
    SmallVector<NodeRef, 16> sorted;
    for (const uint32_t s : steps) sorted.push_back(nodes_[s]);
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  }

  const Form& form_;
  SmallVector<NodeRef, 64> nodes_;  // by step; null: not met yet
  size_t sources_ = 0, closed_ = 0, ints_ = 0, text_ = 0;
};

namespace {

uint64_t hash_of(std::span<const NodeRef> values) {
  uint64_t h = values.size();
  for (NodeRef v : values) h = hash_combine(h, v->hash);
  return h;
}

}  // namespace

KnownForms::KnownForms(Graph& from, Graph& to) : from_(from), to_(to) {}
KnownForms::~KnownForms() { clear(); }

KnownForms::Form KnownForms::form_of(const NormalForm& form, const Toposort& order) {
  Form known{};
  known.values.assign(form.values.begin(), form.values.end());
  known.root = form.root;
  known.calls = form.calls;
  for (const BoundVariable& v : form.variables) known.names.push_back(v.name);
  const NodeMap<uint32_t> positions = positions_in(order.nodes());
  for (NodeRef v : form.asked) known.asked.push_back(positions.at(v));
  for (NodeRef n : order) {
    if (n->op == Op::Buffer) known.inputs.push_back(positions.at(n));
    if (n->op == Op::Bind) known.binds.push_back(positions.at(n));
    known.steps.push_back({n->op, n->dtype, n->lanes, n->nsrc,
                           static_cast<uint32_t>(evaluated_sources(n)),
                           static_cast<uint32_t>(bodies_of(n).size()), n->nints, n->text_size});
  }
  for (size_t i = order.size(); i-- > 0;) {
    NodeRef n = order.nodes()[i];
    const std::span<const NodeRef> bodies = bodies_of(n);
    for (NodeRef s : n->src().first(n->nsrc - closed_sources(n).size()))
      known.sources.push_back(positions.at(s));
    known.closed.insert(known.closed.end(), bodies.begin(), bodies.end());
    known.ints.insert(known.ints.end(), n->ints().begin(), n->ints().end());
    known.text += n->text();
  }
  return known;
}

bool KnownForms::find(std::span<const NodeRef> values, DeviceId default_device,
                      NormalForm& form) const {
  const auto alike = forms_.find(hash_of(values));
  if (alike == forms_.end()) return false;
  for (size_t i = alike->second.size(); i-- > 0;) {
    const Form& known = alike->second[i];
    Walk walk(known);
    if (known.default_device != default_device || !walk.follows(values)) continue;
    form.asked.append(values);
    form.values.append(known.values);
    form.root = known.root;
    form.calls = known.calls;
    for (const uint32_t step : known.inputs) form.inputs.push_back(walk.node(step));
    for (size_t b = 0; b < known.binds.size(); ++b) {
      NodeRef bind = walk.node(known.binds[b]);
      form.variables.push_back({bind->src(0), known.names[b], bind->src(1)->vmin});
    }
    return true;
  }
  return false;
}

void KnownForms::add(const NormalForm& form, DeviceId default_device) {
  const Toposort order = Toposort::evaluated(form.asked);
  Form known = form_of(form, order);
  // Those in the bodies of loops are not met.
  if (known.inputs.size() != form.inputs.size() || known.binds.size() != form.variables.size())
    return;
  known.default_device = default_device;
  if (nodes_ + order.size() > kMostNodes) clear();
  std::vector<Form>& alike = forms_[hash_of(form.asked)];
  if (alike.size() == kMostAlike) drop(alike.front()), alike.erase(alike.begin());
  for (NodeRef body : known.closed) from_.retain(body);
  to_.retain(known.root);
  nodes_ += known.steps.size();
  alike.push_back(std::move(known));
}

void KnownForms::drop(const Form& form) {
  nodes_ -= form.steps.size();
  for (NodeRef body : form.closed) from_.release(body);
  to_.release(form.root);
}

void KnownForms::forget(NodeRef root) {
  for (auto& [hash, alike] : forms_)
    std::erase_if(alike, [&](const Form& form) {
      if (form.root != root) return false;
      drop(form);
      return true;
    });
  std::erase_if(forms_, [](const auto& alike) { return alike.second.empty(); });
}

void KnownForms::clear() {
  for (const auto& [hash, alike] : forms_)
    for (const Form& form : alike) drop(form);
  forms_.clear();
}

}  // namespace weft
