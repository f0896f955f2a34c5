#include "weft/onnx/optimise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/io/tensors.h"
#include "weft/onnx/evaluator.h"
#include "weft/onnx/graph_edit.h"
#include "weft/onnx/read_parts.h"

namespace weft::onnx {

namespace {

constexpr int kMostRounds = 16;
// A node of constants whose result is larger than this, and than what it is made from, stays.
constexpr size_t kMostGrown = 1024;

int64_t opset_of(const Model& m) {
  const auto at = m.opsets.find("");
  return at == m.opsets.end() ? 1 : at->second;
}

// ---- nodes that change nothing

bool is_true(const GraphEdit& edit, const std::string& name) {
  const ConstantData* c = edit.constant(name);
  return !c || (!c->array.bytes.empty() && c->array.bytes[0] != std::byte{0});
}

bool passes_on(const GraphEdit& edit, const Node& n, int64_t opset) {
  if (!n.domain.empty() || n.inputs.empty() || n.inputs[0].empty()) return false;
  if (n.op == "Identity") return true;
  if (n.op != "Dropout" || opset < 7) return false;
  if (n.outputs.size() > 1 && edit.uses(n.outputs[1]) > 0) return false;  // its mask
  return n.inputs.size() < 3 || n.inputs[2].empty() || !is_true(edit, n.inputs[2]);
}

int64_t remove_identities(Model& m) {
  int64_t count = 0;
  for (size_t i = 0; i < m.graph.nodes.size();) {
    GraphEdit edit(m.graph);
    for (; i < m.graph.nodes.size(); ++i) {
      const Node n = m.graph.nodes[i];
      if (!passes_on(edit, n, opset_of(m)) || !edit.redirect(n.outputs[0], n.inputs[0])) continue;
      m.graph.nodes.erase(m.graph.nodes.begin() + static_cast<int64_t>(i));
      ++count;
      break;
    }
  }
  return count;
}

// ---- constants

/// A model of this node alone, with its constants.
Model model_of(const Model& m, const Node& n, const GraphEdit& edit) {
  Model one;
  one.ir_version = m.ir_version;
  one.opsets = m.opsets;
  one.graph.name = "constant";
  one.graph.nodes = {n};
  std::set<std::string> known;
  for (const std::string& name : n.inputs)
    if (!name.empty() && known.insert(name).second)
      one.graph.initialisers.push_back(*edit.constant(name));
  for (const std::string& name : n.outputs)
    if (!name.empty()) one.graph.outputs.push_back({name, {}});
  return one;
}

bool is_of_constants(const Model& m, const GraphEdit& edit, const Node& n) {
  if (is_random(n) || !find_operator(n.domain, n.op, opset_of(m)) || !n.domain.empty())
    return false;
  for (const Attribute& a : n.attributes)
    if (!a.graphs.empty()) return false;
  for (const std::string& name : n.outputs)
    if (edit.is_output(name) || edit.is_captured(name)) return false;
  return std::ranges::all_of(n.inputs, [&](const std::string& name) {
    return name.empty() ||
           (edit.constant(name) && edit.constant(name)->type != ElementType::String);
  });
}

/// The results of a node of constants; empty where it does not become one.
std::vector<std::pair<std::string, Value>> results_of(const Model& m, const GraphEdit& edit,
                                                      const Node& n) {
  const Model one = model_of(m, n, edit);
  size_t given = 0, made = 0;
  for (const ConstantData& c : one.graph.initialisers) given += c.array.bytes.size();
  Evaluator evaluator(one);
  const Values values = evaluator.run(one.graph, {});
  std::vector<std::pair<std::string, Value>> all;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& v = values[i];
    if (v.kind() != Value::Kind::Tensor || !v.dims().is_static()) return {};
    made +=
        static_cast<size_t>(v.dims().product().value()) * static_cast<size_t>(bits(v.dtype())) / 8;
    all.emplace_back(one.graph.outputs[i].name, v);
  }
  return made > std::max(given, kMostGrown) ? std::vector<std::pair<std::string, Value>>() : all;
}

int64_t fold_constants(Model& m) {
  GraphEdit edit(m.graph);
  std::vector<Node> kept;
  int64_t count = 0;
  for (Node& n : m.graph.nodes) {
    std::vector<std::pair<std::string, Value>> results;
    if (is_of_constants(m, edit, n)) try {
        results = results_of(m, edit, n);
      } catch (const Error&) {
        results.clear();  // running the model says what is wrong with the node
      }
    for (const auto& [name, value] : results) {
      const std::optional<HostArray> known = value.constant();
      edit.add_constant(name, value.type(), known ? *known : host_array_of(value.tensor()));
    }
    if (results.empty())
      kept.push_back(std::move(n));
    else
      ++count;
  }
  m.graph.nodes = std::move(kept);
  return count;
}

std::string key_of(const ConstantData& c) {
  std::string key = strformat("{} {} ", static_cast<int>(c.type), shape_text(c.shape));
  return key + std::to_string(hash_bytes(c.array.bytes.data(), c.array.bytes.size()));
}

int64_t share_constants(Model& m) {
  GraphEdit edit(m.graph);
  std::map<std::string, std::vector<const ConstantData*>> by_key;
  int64_t count = 0;
  std::set<std::string> gone;
  for (const ConstantData& c : m.graph.initialisers) {
    if (c.type == ElementType::String || !edit.constant(c.name) || edit.is_output(c.name)) continue;
    std::vector<const ConstantData*>& same = by_key[key_of(c)];
    const auto at = std::ranges::find_if(same, [&](const ConstantData* other) {
      return std::ranges::equal(other->array.bytes, c.array.bytes);
    });
    if (at == same.end())
      same.push_back(&c);
    else if (edit.redirect(c.name, (*at)->name))
      gone.insert(c.name), ++count;
  }
  std::erase_if(m.graph.initialisers, [&](const ConstantData& c) { return gone.contains(c.name); });
  return count;
}

// ---- batch norms

struct BatchNorm {
  Tensor scale, bias, mean, variance;
  double eps = 1e-5;
};

std::optional<BatchNorm> batch_norm_of(const GraphEdit& edit, const Node& n) {
  if (n.op != "BatchNormalization" || !n.domain.empty() || n.inputs.size() != 5)
    return std::nullopt;
  for (const char* off : {"training_mode", "spatial"}) {
    const Attribute* a = n.find(off);
    if (a && a->integer != (off[0] == 's' ? 1 : 0)) return std::nullopt;
  }
  for (size_t i = 1; i < n.outputs.size(); ++i)
    if (!n.outputs[i].empty() && edit.uses(n.outputs[i]) > 0) return std::nullopt;
  Tensor parts[4];
  for (size_t i = 0; i < 4; ++i) {
    const ConstantData* c = edit.constant(n.inputs[1 + i]);
    if (!c || !is_float(c->array.dtype) || c->shape.size() != 1) return std::nullopt;
    parts[i] = tensor_of(c->array).cast(DType::F64);
  }
  const Attribute* eps = n.find("epsilon");
  return BatchNorm{parts[0], parts[1], parts[2], parts[3], eps ? eps->number : 1e-5};
}

/// Weights whose outputs are scaled by the norm, and the bias that is left: Jacob et al. 2018.
bool merge_into(GraphEdit& edit, Node& conv, const BatchNorm& norm) {
  const ConstantData* weight = conv.inputs.size() > 1 ? edit.constant(conv.inputs[1]) : nullptr;
  const bool biased = conv.inputs.size() > 2 && !conv.inputs[2].empty();
  const ConstantData* bias = biased ? edit.constant(conv.inputs[2]) : nullptr;
  if (!weight || !is_float(weight->array.dtype) || weight->shape.size() < 3 || (biased && !bias))
    return false;
  if (norm.scale.dim(0) != Dim(weight->shape[0])) return false;
  const Tensor factor = norm.scale / (norm.variance + norm.eps).sqrt();
  Dims first(std::vector<Dim>(weight->shape.size(), 1));
  first[0] = weight->shape[0];
  const DType d = weight->array.dtype;
  const Tensor w = (tensor_of(weight->array).cast(DType::F64) * factor.reshape(first)).cast(d);
  const Tensor before = bias ? tensor_of(bias->array).cast(DType::F64) : norm.mean * 0;
  const Tensor b = ((before - norm.mean) * factor + norm.bias).cast(d);
  const ElementType type = weight->type;
  const std::string weight_name = edit.fresh(weight->name + "_merged");
  edit.add_constant(weight_name, type, host_array_of(w));
  const std::string bias_name = edit.fresh(weight_name + "_bias");
  edit.add_constant(bias_name, type, host_array_of(b));
  conv.inputs.resize(3);
  conv.inputs[1] = weight_name, conv.inputs[2] = bias_name;
  return true;
}

int64_t merge_batch_norms(Model& m) {
  GraphEdit edit(m.graph);
  int64_t count = 0;
  std::set<std::string> gone;
  for (Node& n : m.graph.nodes) {
    const auto norm = batch_norm_of(edit, n);
    Node* conv = norm ? edit.producer(n.inputs[0]) : nullptr;
    if (!conv || conv->op != "Conv" || !conv->domain.empty() || edit.uses(n.inputs[0]) != 1)
      continue;
    if (edit.is_output(n.inputs[0]) || edit.is_captured(n.inputs[0])) continue;
    if (!merge_into(edit, *conv, *norm)) continue;
    conv->outputs[0] = n.outputs[0];
    gone.insert(n.outputs[0]);
    n.op.clear();  // to be erased
    ++count;
  }
  std::erase_if(m.graph.nodes, [](const Node& n) { return n.op.empty(); });
  return count;
}

// ---- transposes

/// The order of a Transpose; empty: it is none, or says none, or a wrong one.
std::vector<int64_t> order_of(const Node* n) {
  if (!n || n->op != "Transpose" || !n->domain.empty()) return {};
  const Attribute* perm = n->find("perm");
  if (!perm) return {};
  std::vector<int64_t> sorted = perm->integers;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i)) return {};
  return perm->integers;
}

/// transpose(transpose(x)) becomes one, or x.
int64_t merge_transposes(Model& m) {
  int64_t count = 0;
  GraphEdit edit(m.graph);
  for (Node& n : m.graph.nodes) {
    const std::vector<int64_t> second = order_of(&n);
    Node* inner = second.empty() ? nullptr : edit.producer(n.inputs[0]);
    const std::vector<int64_t> first = order_of(inner);
    if (first.empty() || first.size() != second.size()) continue;
    std::vector<int64_t> both;
    for (const int64_t axis : second) both.push_back(first[static_cast<size_t>(axis)]);
    n.inputs[0] = inner->inputs[0];
    ++count;
    if (std::ranges::is_sorted(both)) {
      n.op = "Identity";
      n.attributes.clear();
    } else {
      for (Attribute& a : n.attributes) a.integers = both;
    }
  }
  return count;
}

// ---- what nothing reads

int64_t remove_unread(Model& m) {
  int64_t count = 0;
  for (bool more = true; more;) {
    GraphEdit edit(m.graph);
    const size_t before = m.graph.nodes.size();
    std::erase_if(m.graph.nodes, [&](const Node& n) {
      return std::ranges::all_of(n.outputs,
                                 [&](const std::string& name) { return edit.uses(name) == 0; });
    });
    count += static_cast<int64_t>(before - m.graph.nodes.size());
    more = before != m.graph.nodes.size();
  }
  GraphEdit edit(m.graph);
  std::erase_if(m.graph.initialisers, [&](const ConstantData& c) {
    return edit.uses(c.name) == 0 && edit.constant(c.name);
  });
  return count;
}

struct Pass {
  const char* what;
  int64_t (*run)(Model&);
};
constexpr Pass kPasses[] = {
    {"nodes that change nothing removed", remove_identities},
    {"nodes of constants computed", fold_constants},
    {"batch norms merged into convolutions", merge_batch_norms},
    {"transposes merged", merge_transposes},
    {"equal initialisers shared", share_constants},
    {"nodes that nothing reads removed", remove_unread},
};

}  // namespace

Model optimised(Model m, Optimisations* done) {
  int64_t counts[std::size(kPasses)] = {};
  bool more = true;
  for (int round = 0; more && round < kMostRounds; ++round) {
    more = false;
    for (size_t i = 0; i < std::size(kPasses); ++i) {
      const int64_t count = kPasses[i].run(m);
      counts[i] += count;
      more |= count > 0;
    }
  }
  m.graph.values.clear();  // declared types of values that may be gone
  for (size_t i = 0; done && i < std::size(kPasses); ++i)
    done->emplace_back(kPasses[i].what, counts[i]);
  return m;
}

}  // namespace weft::onnx
