// What surrounds optimizers: schedules of rates, gradients limited, averaged weights.
#include <nanobind/stl/function.h>

#include "weft/nn/ema.h"
#include "weft/nn/gradients.h"
#include "weft/nn/schedules.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

/// What weft/nn/schedules.py passes on.
void bind_schedules(nb::module_ m) {
  method(m, "constant", nn::constant);
  method(m, "step_decay", nn::step_decay, "every"_a, "gamma"_a);
  method(m, "multi_step", nn::multi_step, "at"_a, "gamma"_a);
  method(m, "exponential", nn::exponential, "gamma"_a);
  method(m, "linear", nn::linear, "steps"_a, "start"_a, "end"_a);
  method(m, "polynomial", nn::polynomial, "steps"_a, "power"_a);
  method(m, "cosine", nn::cosine, "steps"_a, "least"_a);
  method(m, "cosine_restarts", nn::cosine_restarts, "cycle"_a, "factor"_a, "least"_a);
  method(
      m, "one_cycle",
      [](double peak, int64_t steps, double rise, double start_divisor, double end_divisor,
         bool cosine) {
        return nn::one_cycle(peak, steps, {rise, start_divisor, end_divisor, cosine});
      },
      "peak"_a, "steps"_a, "rise"_a, "start_divisor"_a, "end_divisor"_a, "cosine"_a);
  method(m, "warmup", nn::warmup, "steps"_a, "then"_a, "start"_a);
  method(m, "in_sequence", nn::in_sequence, "schedules"_a, "milestones"_a);
}

void bind_gradients(nb::module_& m) {
  method(
      m, "gradient_norm",
      [](const std::vector<Tensor>& params, double p) {
        return nn::gradient_norm(params, p, CallSite());
      },
      "params"_a, "p"_a);
  method(
      m, "clip_gradient_norm",
      [](const std::vector<Tensor>& params, double most, double p) {
        return nn::clip_gradient_norm(params, most, p, CallSite());
      },
      "params"_a, "most"_a, "p"_a);
  method(
      m, "clip_gradient_value",
      [](const std::vector<Tensor>& params, double most) {
        nn::clip_gradient_value(params, most, CallSite());
      },
      "params"_a, "most"_a);
}

nb::dict state_of(nn::Ema& ema) {
  nb::dict state;
  const auto leaf = [&](const std::string& name, Tensor& t) {
    state[nb::str(name.c_str())] = nb::cast(t);
  };
  StateVisitor visitor(leaf);
  ema.visit(visitor);
  return state;
}

void bind_ema(nb::module_& m) {
  nb::class_<nn::Ema> ema(m, "Ema");
  ema.def(
      "__init__",
      [](nn::Ema* self, const nb::dict& model, double decay, bool warm_up) {
        StateDict named;
        for (const auto& [name, t] : model)
          named.push_back({nb::cast<std::string>(name), nb::cast<Tensor>(t)});
        new (self) nn::Ema(std::move(named), {decay, warm_up}, python_call_site());
      },
      "model"_a, "decay"_a, "warm_up"_a);
  computing_method(ema, "update", [](nn::Ema& x) { x.update(CallSite()); });
  method(ema, "schedule_update", [](nn::Ema& x) { return x.schedule_update(CallSite()); });
  computing_method(ema, "swap", [](nn::Ema& x) { x.swap(CallSite()); });
  ema.def_prop_ro("state", state_of, "The average by the model's names, and \"updates\".");
}

}  // namespace

void bind_training(nb::module_& m) {
  bind_schedules(m.def_submodule("schedules"));
  bind_gradients(m);
  bind_ema(m);
}

}  // namespace weft::python
