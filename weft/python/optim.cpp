// Optimizers: those of nn/ behind weft.nn.optim.
#include "weft/nn/optim.h"

#include "weft/python/bindings.h"

namespace weft::python {

namespace {

/// What an optimizer keeps, by name; each shares storage with it.
nb::dict state_of(nn::Optimizer& o) {
  nb::dict state;
  const auto leaf = [&](const std::string& name, Tensor& t) {
    state[nb::str(name.c_str())] = nb::cast(t);
  };
  StateVisitor visitor(leaf);
  o.visit(visitor);
  return state;
}

nb::object lr_of(nn::Optimizer& o) { return state_of(o)["lr"]; }

}  // namespace

void bind_optim(nb::module_& m) {
  nb::class_<nn::Optimizer> o(m, "Optimizer");
  method(o, "zero_grad", &nn::Optimizer::zero_grad);
  computing_method(o, "step", [](nn::Optimizer& x) { x.step(CallSite()); });
  method(o, "schedule_step", [](nn::Optimizer& x) { return x.schedule_step(CallSite()); });
  o.def_prop_ro("lr", lr_of, "A Tensor: captured steps read it anew.");
  method(o, "set_lr", [](nn::Optimizer& x, double lr) { x.set_lr(lr, CallSite()); }, "lr"_a);
  o.def_prop_ro("state", state_of, "lr and what is kept per parameter, by name.");

  nb::class_<nn::SGD, nn::Optimizer>(m, "SGD").def(
      "__init__",
      [](nn::SGD* self, std::vector<Tensor> params, double lr, double momentum, double weight_decay,
         bool nesterov) {
        new (self)
            nn::SGD(std::move(params), {lr, momentum, weight_decay, nesterov}, python_call_site());
      },
      "params"_a, "lr"_a, "momentum"_a, "weight_decay"_a, "nesterov"_a);
  nb::class_<nn::Adam, nn::Optimizer>(m, "Adam").def(
      "__init__",
      [](nn::Adam* self, std::vector<Tensor> params, double lr, double b1, double b2, double eps,
         double weight_decay, bool decoupled) {
        new (self) nn::Adam(std::move(params), {lr, b1, b2, eps, weight_decay, decoupled},
                            python_call_site());
      },
      "params"_a, "lr"_a, "b1"_a, "b2"_a, "eps"_a, "weight_decay"_a, "decoupled"_a);
}

}  // namespace weft::python
