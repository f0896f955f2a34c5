// Functions as one node: gradients of the user's own, checkpoints, scans, traces that are kept.
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "weft/base/context.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/tensor/traced_writes.h"
#include "weft/tensor/tracing.h"

namespace weft {

namespace {

void require_some(const char* tag, const Tensors& inputs) {
  if (inputs.empty()) fail(tag, "needs at least one input");
}

void require_gradient(size_t i, const Tensor& gradient, const Tensor& input) {
  if (!(gradient.dims() == input.dims()))
    fail("with_gradient", "the gradient of input {} has shape {}, the input {}: they must be equal",
         i, gradient.dims().text(), input.dims().text());
}

/// Gradients in terms of placeholders for those of the results and for the results, which become
/// inner params: what a rule makes of its own result has that result's derivative, not that of the
/// steps that computed it.
std::vector<NodeRef> traced_gradients(Graph& g, const GradientFunction& gradient,
                                      const Tensors& inputs, const Tensors& results,
                                      int64_t& slot) {
  Tensors holes = placeholders(results);
  const Tensors seen = placeholders(results), given = gradient(inputs, seen, holes);
  holes.insert(holes.end(), seen.begin(), seen.end());
  if (given.size() != inputs.size())
    fail("with_gradient",
         "{} gradients for {} inputs: give one for each, empty where there is none", given.size(),
         inputs.size());
  std::vector<NodeRef> nodes, defined = nodes_of(results);
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].defined()) {
      nodes.push_back(g.make({Op::Sink, DType::Void, {}}));
      continue;
    }
    require_gradient(i, given[i], inputs[i]);
    nodes.push_back(given[i].cast(inputs[i].dtype()).node());
    defined.push_back(nodes.back());
  }
  slot = inner_slots_above(defined);
  NodeMap<NodeRef> replacement;
  for (size_t k = 0; k < holes.size(); ++k) {
    NodeRef like = holes[k].node();
    replacement.set(like, g.param(slot + static_cast<int64_t>(k), like->dtype, like->shape->span(),
                                  like->device));
  }
  for (NodeRef& n : nodes) n = substitute(g, n, replacement);
  return nodes;
}

}  // namespace

Tensors with_gradient(const TensorFunction& f, const GradientFunction& gradient,
                      const Tensors& inputs, CallSite at) {
  const CallSiteScope site(at);
  require_some("with_gradient", inputs);
  const Tensors results = f(inputs);
  require_some("with_gradient", results);
  Context& context = inputs[0].context();
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  int64_t slot = 0;
  const std::vector<NodeRef> gradients = traced_gradients(g, gradient, inputs, results, slot);
  std::vector<NodeRef> sources = nodes_of(results);
  for (const Tensor& x : inputs) sources.push_back(x.node());
  sources.insert(sources.end(), gradients.begin(), gradients.end());
  const int64_t ints[] = {static_cast<int64_t>(results.size()), static_cast<int64_t>(inputs.size()),
                          slot};
  NodeRef made = g.make({Op::Function, sources[0]->dtype, sources, ints});
  return results_of(context, g, made, 0, results.size());
}

Tensor contiguous_backward(const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  const GradientFunction stored = [](const Tensors&, const Tensors&, const Tensors& upstream) {
    return Tensors{upstream[0].contiguous()};
  };
  return with_gradient([](const Tensors& in) { return in; }, stored, {x})[0];
}

Tensors checkpoint(const TensorFunction& f, const Tensors& inputs, CallSite at) {
  const CallSiteScope site(at);
  require_some("checkpoint", inputs);
  RepeatInputs in;
  for (const Tensor& x : inputs) in.stacked.push_back(x.unsqueeze(0));
  std::optional<TracedWrites> writes;
  size_t given = 0;
  const RepeatBody results = repeat(in, [&](const Tensors& slices, const Tensors&, const Tensors&) {
    writes.emplace("checkpoint", slices);
    RepeatBody body{{}, f(slices)};
    require_some("checkpoint", body.outs);
    given = body.outs.size();
    // What it assigns is computed with its results.
    for (const Tensor& after : writes->take()) body.outs.push_back(after);
    return body;
  });
  Tensors out;
  for (const Tensor& y : results.outs) out.push_back(y.squeeze(0));
  writes->give({out.begin() + static_cast<ptrdiff_t>(given), out.end()});
  out.resize(given);
  return out;
}

// ---- scan

namespace {

int64_t count_of(const Tensors& xs, const ScanOptions& options) {
  if (xs.empty()) {
    if (options.count < 1)
      fail("scan", "without xs, options.count says how often: got {}", options.count);
    return options.count;
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].ndim() == 0)
      fail("scan", "xs {} is a scalar: slices are taken along the first axis", i);
    if (!xs[i].dim(0).is_static())
      fail("scan", "xs {} of shape {} has a length that is not known", i, xs[i].dims().text());
    if (!(xs[i].dim(0) == xs[0].dim(0)))
      fail("scan", "xs {} of shape {} has {} slices, xs 0 {}: they must be equal", i,
           xs[i].dims().text(), xs[i].dim(0).text(), xs[0].dim(0).text());
  }
  return xs[0].dim(0).max();
}

void check_until(const Tensors& carried, int64_t until) {
  if (until == -1) return;
  if (until < 0 || until >= std::ssize(carried))
    fail("scan", "until is {}, of {} carried tensors", until, carried.size());
  if (const DType dtype = carried[static_cast<size_t>(until)].dtype(); dtype != DType::I32)
    fail("scan", "until names carried tensor {}, which is {}: make it i32", until, name(dtype));
}

/// No slice at all: what is carried stays, and stacks are empty.
ScanResult scan_nothing(const ScanFunction& f, const Tensors& carried, const Tensors& xs) {
  Tensors slices;
  for (const Tensor& x : xs) {
    Dims dims = x.dims();
    dims.erase(0);
    slices.push_back(placeholder(x, dims));
  }
  ScanResult out{carried, {}};
  for (const Tensor& y : f(placeholders(carried), slices).stacked) {
    Dims dims = y.dims();
    dims.insert(0, 0);
    out.stacked.push_back(Tensor::zeros(dims, y.dtype()));
  }
  return out;
}

}  // namespace

ScanResult scan(const ScanFunction& f, const Tensors& carried, const Tensors& xs,
                const ScanOptions& options, CallSite at) {
  const CallSiteScope site(at);
  if (carried.empty() && xs.empty()) fail("scan", "needs something to carry or to go over");
  const int64_t count = count_of(xs, options);
  if (count > kMostRounds) fail("scan", "{} slices: at most {} are gone over", count, kMostRounds);
  check_until(carried, options.until);
  if (count == 0) return scan_nothing(f, carried, xs);
  const RepeatBody results =
      repeat({count, options.reversed, xs, {}, carried, options.apart, options.until},
             [&](const Tensors& slices, const Tensors&, const Tensors& state) {
               TracedWrites writes("scan", slices);
               ScanResult made = f(state, slices);
               writes.refuse_in_rounds();
               if (made.carried.empty() && made.stacked.empty())
                 fail("scan", "the body gives nothing");
               if (options.until >= 0 && !made.stacked.empty())
                 fail("scan", "{} tensors to be stacked of slices that may be left out (until {})",
                      made.stacked.size(), options.until);
               return RepeatBody{std::move(made.carried), std::move(made.stacked)};
             });
  return {results.carried, results.outs};
}

Tensors while_loop(const std::function<Tensor(const Tensors&)>& condition,
                   const TensorFunction& body, const Tensors& carried, int64_t most, CallSite at) {
  const CallSiteScope site(at);
  require_some("while_loop", carried);
  if (most < 0) fail("while_loop", "at most {} rounds: give a number from 0 on", most);
  if (most == 0) return carried;
  const ScanFunction round = [&](const Tensors& state, const Tensors&) {
    const Tensors given(state.begin(), state.end() - 1);
    Tensors next = body(given);
    require_same("while_loop", given, next);
    const Tensor asked = condition(given);
    if (asked.ndim() != 0)
      fail("while_loop",
           "the condition has shape {}: it is one number, as .any() or .max() give it",
           asked.dims().text());
    const Tensor done = (asked == 0) | (state.back() != 0);
    for (size_t k = 0; k < next.size(); ++k) next[k] = done.where(given[k], next[k]);
    next.push_back(done.cast(DType::I32));
    return ScanResult{std::move(next), {}};
  };
  Tensors state = carried;
  state.push_back(Tensor::zeros({}, DType::I32).to(carried[0].device()));
  Tensors last = scan(round, state, {}, {.count = most, .until = std::ssize(carried)}).carried;
  last.pop_back();
  return last;
}

// ---- traces

namespace {

struct Trace {
  Tensors holes, results;
};

/// By what the arguments look like.
struct Traces {
  std::recursive_mutex mutex;  // a function may be its own body
  std::map<std::vector<const void*>, Trace> known;
};

std::vector<const void*> signature(const Tensors& inputs) {
  std::vector<const void*> key;
  for (const Tensor& x : inputs) {
    NodeRef n = x.node();
    key.push_back(&x.context());
    key.push_back(n->shape);
    key.push_back(
        reinterpret_cast<const void*>(static_cast<uintptr_t>(n->dtype) << 16 | n->device));
  }
  return key;
}

}  // namespace

TensorFunction traced(TensorFunction f) {
  auto traces = std::make_shared<Traces>();
  return [f = std::move(f), traces](const Tensors& inputs) {
    require_some("traced", inputs);
    std::lock_guard lock(traces->mutex);
    Trace& trace = traces->known[signature(inputs)];
    if (trace.holes.empty()) {
      const Tensors holes = placeholders(inputs);
      trace.results = f(holes);
      trace.holes = holes;
    }
    return bound(trace.results, trace.holes, inputs);
  };
}

}  // namespace weft
