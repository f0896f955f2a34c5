// Gradients of a batch in micro-batches: a repeated body that carries their sums.
#include <algorithm>

#include "weft/base/context.h"
#include "weft/tensor/random.h"
#include "weft/tensor/tracing.h"

namespace weft {

namespace {

constexpr const char* kTag = "accumulate_gradients";
constexpr int kMostTraces = 4;  // each may find what only runs with the state of the one before
using Loss = std::function<Tensor(const Tensors&)>;

int64_t checked_length(const Tensors& batch, int64_t parts) {
  if (batch.empty()) fail(kTag, "needs at least one tensor to cut into micro-batches");
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].ndim() == 0)
      fail(kTag, "tensor {} is a scalar: micro-batches are cut along the first axis", i);
    if (!batch[i].dim(0).is_static())
      fail(kTag, "tensor {} of shape {} has a length that is not known", i, batch[i].dims().text());
    if (!(batch[i].dim(0) == batch[0].dim(0)))
      fail(kTag, "tensor {} of shape {} has {} examples, tensor 0 {}: they must be equal", i,
           batch[i].dims().text(), batch[i].dim(0).text(), batch[0].dim(0).text());
  }
  const int64_t length = batch[0].dim(0).value();
  if (parts < 1 || length < 1 || length % parts != 0)
    fail(kTag,
         "a batch of {} cannot be cut into {} equal micro-batches: the batch must be a multiple of "
         "their number, which is at least 1",
         length, parts);
  return length;
}

/// (n, ...) as (parts, n / parts, ...).
Tensor cut(const Tensor& x, int64_t parts) {
  Dims dims = x.dims();
  dims[0] = x.dim(0).value() / parts;
  dims.insert(0, parts);
  return x.reshape(dims);
}

Tensor at_least_f32(const Tensor& x) { return bits(x.dtype()) < 32 ? x.cast(DType::F32) : x; }

/// The loss of one micro-batch, and everything that it changes.
class Trace {
 public:
  Trace(const Loss& loss, const Tensors& stacks) : context_(stacks[0].context()) {
    for (const Tensor& x : stacks) {
      Dims dims = x.dims();
      dims.erase(0);
      slices_.push_back(placeholder(x, dims));
    }
    first_draw_ = placeholder(Tensor::zeros({}, DType::U32), {});
    // What is assigned to is found by the first trace, and read as what is carried by the next.
    for (int traces = 1; !run(loss); ++traces)
      if (traces == kMostTraces)
        fail(kTag,
             "the loss assigns to other tensors in every call, {} so far: assign to tensors that "
             "are made outside of it",
             states_.size());
    check();
    for (const LeafGradient& g : leaf_gradients(loss_)) {
      leaves_.push_back(g.leaf);
      gradients_.push_back(at_least_f32(g.gradient));
    }
    if (leaves_.empty())
      fail(kTag, "the loss depends on no tensor with requires_grad_(): there is nothing to train");
  }

  Tensor accumulate(Tensors stacks, int64_t parts, Reduction reduction) const;

 private:
  struct State {
    std::shared_ptr<TensorCell> cell;
    RootedNode before;
    Tensor hole;
  };

  bool run(const Loss& loss);
  bool note(const WriteWatch& watch);
  void check() const;
  Tensors begins() const;
  Tensors nexts(const Tensors& carried) const;
  void leave(const Tensors& carried, double scale) const;

  Context& context_;
  Tensors slices_;
  Tensor first_draw_, loss_;
  uint32_t draws_ = 0;
  std::vector<State> states_;
  Tensors after_;  ///< of states
  std::vector<std::shared_ptr<TensorCell>> leaves_;
  Tensors gradients_;
};

/// False where the loss assigned to something that was not yet known to be carried.
bool Trace::run(const Loss& loss) {
  const WriteWatch watch;
  const DrawScope draws(first_draw_);
  for (const State& s : states_) s.cell->set_value(s.hole.node());
  const auto restore = [&] {
    for (const WriteWatch::Write& w : watch.writes())
      if (const auto cell = w.cell.lock()) cell->set_value(w.before.get());
    for (const State& s : states_) s.cell->set_value(s.before.get());
  };
  try {
    loss_ = TensorAccess::make(context_, loss(slices_).node());  // its tensor is no state
    after_.clear();
    for (const State& s : states_) after_.push_back(TensorAccess::make(context_, s.cell->value()));
  } catch (...) {
    restore();
    throw;
  }
  draws_ = draws.count();
  restore();
  return !note(watch);
}

/// Whether there is anything new in what was written.
bool Trace::note(const WriteWatch& watch) {
  const size_t known = states_.size();
  for (const WriteWatch::Write& w : watch.writes()) {
    const auto cell = std::dynamic_pointer_cast<TensorCell>(w.cell.lock());
    const auto is_same = [&](const State& s) { return s.cell == cell; };
    if (!cell || std::ranges::any_of(states_, is_same)) continue;
    const Tensor whole = TensorAccess::whole(cell);
    states_.push_back({cell, w.before, placeholder(whole, whole.dims())});
  }
  return states_.size() > known;
}

void Trace::check() const {
  if (!is_float(loss_.dtype()))
    fail_type(kTag, "the loss must be a floating-point number: got {} of shape {}",
              name(loss_.dtype()), loss_.dims().text());
  if (!(loss_.dims().product() == Dim(1)))
    fail(kTag, "the loss must be one number, but its shape is {}: reduce it with mean() or sum()",
         loss_.dims().text());
}

/// The loss, the gradients' sums, states.
Tensors Trace::begins() const {
  Tensors all{at_least_f32(loss_).zeros_like()};
  for (const Tensor& g : gradients_) all.push_back(g.zeros_like());
  for (const State& s : states_) all.push_back(TensorAccess::make(context_, s.before.get()));
  return all;
}

Tensors Trace::nexts(const Tensors& carried) const {
  Tensors next{carried[0] + at_least_f32(loss_)};
  for (const Tensor& g : gradients_) next.push_back(carried[next.size()] + g);
  next.insert(next.end(), after_.begin(), after_.end());
  return next;
}

Tensor Trace::accumulate(Tensors stacks, int64_t parts, Reduction reduction) const {
  Tensors holes = slices_;
  if (draws_ > 0) {
    const Generator::Draw first =
        Generator::of(context_).reserve(draws_ * static_cast<uint32_t>(parts));
    stacks.push_back(Tensor::arange(parts, DType::U32) * int64_t{draws_} + first.number);
    holes.push_back(first_draw_);
  }
  for (const State& s : states_) holes.push_back(s.hole);
  const auto round = [&](const Tensors& slices, const Tensors&, const Tensors& carried) {
    Tensors values = slices;
    values.insert(values.end(), carried.end() - static_cast<ptrdiff_t>(states_.size()),
                  carried.end());
    return RepeatBody{bound(nexts(carried), holes, values), {}};
  };
  RepeatInputs in{parts, false, std::move(stacks), {}, begins()};
  in.apart = true;
  const Tensors last = repeat(in, round).carried;
  const double scale = reduction == Reduction::Mean ? 1.0 / static_cast<double>(parts) : 1.0;
  leave(last, scale);
  const Tensor loss = (last[0] * scale).cast(loss_.dtype());
  note_walked(loss);
  return loss;
}

/// What a loop over the micro-batches would leave behind.
void Trace::leave(const Tensors& carried, double scale) const {
  for (size_t i = 0; i < leaves_.size(); ++i)
    add_gradient(*leaves_[i], (carried[1 + i] * scale).cast(leaves_[i]->value()->dtype));
  for (size_t i = 0; i < states_.size(); ++i)
    TensorAccess::whole(states_[i].cell).assign(carried[1 + leaves_.size() + i]);
}

}  // namespace

Tensor accumulate_gradients(const Loss& loss, const Tensors& batch, int64_t parts,
                            Reduction reduction, CallSite at) {
  const CallSiteScope site(at);
  checked_length(batch, parts);
  if (reduction == Reduction::None)
    fail(kTag, "losses of micro-batches are reduced to their mean or their sum, not to none");
  const OpScope scope(batch[0], at);
  Tensors stacks;
  for (const Tensor& x : batch) stacks.push_back(cut(x, parts));
  return Trace(loss, stacks).accumulate(std::move(stacks), parts, reduction);
}

}  // namespace weft
