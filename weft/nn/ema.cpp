#include "weft/nn/ema.h"

#include "weft/base/context.h"
#include "weft/base/error.h"

namespace weft::nn {

namespace {

// Of memory of its own: as a value it would be an alias of the model until the next write.
Tensor copy_of(const Tensor& t) {
  const DType dtype = is_float(t.dtype()) && bits(t.dtype()) < 32 ? DType::F32 : t.dtype();
  Tensor copy = own_constant(t.dims(), 0, dtype);
  return copy.assign(t.detach());
}

}  // namespace

Ema::Ema(StateDict model, const EmaOptions& options, CallSite at)
    : model_(std::move(model)), options_(options) {
  const CallSiteScope site(at);
  if (!(options.decay >= 0 && options.decay <= 1)) {
    fail("Ema", "decay must be in [0, 1], not {}", options.decay);
  }
  std::vector<Tensor> made;
  for (const NamedTensor& named : model_) {
    average_.push_back({named.name, copy_of(named.tensor)});
    made.push_back(average_.back().tensor);
  }
  realize(made);
  updates_ = own_constant({}, 0);
}

std::vector<Tensor> Ema::schedule_update(CallSite at) {
  const CallSiteScope site(at);
  updates_ += 1;
  Tensor rest = Tensor(1 - options_.decay);
  if (options_.warm_up) rest = rest.maximum(1 - (1 + updates_) / (10 + updates_));
  std::vector<Tensor> changed = {updates_};
  for (size_t i = 0; i < model_.size(); ++i) {
    Tensor& average = average_[i].tensor;
    const Tensor now = model_[i].tensor.detach();
    average.assign(is_float(now.dtype()) ? average + (now - average) * rest : now);
    changed.push_back(average);
  }
  return changed;
}

void Ema::update(CallSite at) { realize(schedule_update(at), at); }

void Ema::swap(CallSite at) {
  const CallSiteScope site(at);
  const ContextScope scope(updates_.context());
  std::vector<Tensor> changed;
  for (size_t i = 0; i < model_.size(); ++i) {
    Tensor &model = model_[i].tensor, &average = average_[i].tensor;
    const Tensor was = Tensor::from_node(model.node());  // no alias: it is written next
    model.assign(average.detach());
    average.assign(was);
    changed.insert(changed.end(), {model, average});
  }
  realize(changed);
}

void Ema::visit(StateVisitor& v) {
  v("updates", updates_);
  for (NamedTensor& named : average_) v(named.name, named.tensor);
}

}  // namespace weft::nn
