// Optimizers: those of nn/ behind weft.nn.optim.
#include "weft/nn/optim.h"

#include <nanobind/stl/tuple.h>

#include "weft/base/context.h"
#include "weft/nn/adam.h"
#include "weft/nn/adaptive.h"
#include "weft/nn/sgd.h"
#include "weft/python/bindings.h"
#include "weft/tensor/training.h"

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

void bind_sgd(nb::module_& m) {
  nb::class_<nn::SGD, nn::Optimizer>(m, "SGD").def(
      "__init__",
      [](nn::SGD* self, std::vector<Tensor> params, double lr, double momentum, double weight_decay,
         bool nesterov, bool classic, bool decoupled, double trust) {
        const nn::SgdOptions options{.lr = lr,
                                     .momentum = momentum,
                                     .weight_decay = weight_decay,
                                     .nesterov = nesterov,
                                     .classic = classic,
                                     .decoupled = decoupled,
                                     .trust = trust};
        new (self) nn::SGD(std::move(params), options, python_call_site());
      },
      "params"_a, "lr"_a, "momentum"_a, "weight_decay"_a, "nesterov"_a, "classic"_a = false,
      "decoupled"_a = false, "trust"_a = 0.0);
  nb::class_<nn::Muon, nn::Optimizer>(m, "Muon").def(
      "__init__",
      [](nn::Muon* self, std::vector<Tensor> params, double lr, double momentum,
         double weight_decay, bool nesterov, int steps,
         std::tuple<double, double, double> coefficients) {
        const auto [x, y, z] = coefficients;
        const nn::MuonOptions options{.lr = lr,
                                      .momentum = momentum,
                                      .weight_decay = weight_decay,
                                      .nesterov = nesterov,
                                      .steps = steps,
                                      .coefficients = {x, y, z}};
        new (self) nn::Muon(std::move(params), options, python_call_site());
      },
      "params"_a, "lr"_a, "momentum"_a, "weight_decay"_a, "nesterov"_a, "ns_steps"_a,
      "ns_coefficients"_a);
}

nn::AdamOptions moments(double lr, double b1, double b2, double eps, double weight_decay,
                        bool decoupled) {
  return {.lr = lr,
          .beta1 = b1,
          .beta2 = b2,
          .eps = eps,
          .weight_decay = weight_decay,
          .decoupled = decoupled};
}

void bind_adam(nb::module_& m) {
  nb::class_<nn::Adam, nn::Optimizer>(m, "Adam").def(
      "__init__",
      [](nn::Adam* self, std::vector<Tensor> params, double lr, double b1, double b2, double eps,
         double weight_decay, bool decoupled, bool layerwise, bool amsgrad) {
        const nn::AdamOptions options{.lr = lr,
                                      .beta1 = b1,
                                      .beta2 = b2,
                                      .eps = eps,
                                      .weight_decay = weight_decay,
                                      .decoupled = decoupled,
                                      .amsgrad = amsgrad,
                                      .layerwise = layerwise};
        new (self) nn::Adam(std::move(params), options, python_call_site());
      },
      "params"_a, "lr"_a, "b1"_a, "b2"_a, "eps"_a, "weight_decay"_a, "decoupled"_a,
      "layerwise"_a = false, "amsgrad"_a = false);
  nb::class_<nn::NAdam, nn::Adam>(m, "NAdam")
      .def(
          "__init__",
          [](nn::NAdam* self, std::vector<Tensor> params, double lr, double b1, double b2,
             double eps, double weight_decay, bool decoupled, double momentum_decay) {
            new (self)
                nn::NAdam(std::move(params), moments(lr, b1, b2, eps, weight_decay, decoupled),
                          momentum_decay, python_call_site());
          },
          "params"_a, "lr"_a, "b1"_a, "b2"_a, "eps"_a, "weight_decay"_a, "decoupled"_a,
          "momentum_decay"_a);
  nb::class_<nn::RAdam, nn::Adam>(m, "RAdam")
      .def(
          "__init__",
          [](nn::RAdam* self, std::vector<Tensor> params, double lr, double b1, double b2,
             double eps, double weight_decay, bool decoupled) {
            new (self)
                nn::RAdam(std::move(params), moments(lr, b1, b2, eps, weight_decay, decoupled),
                          python_call_site());
          },
          "params"_a, "lr"_a, "b1"_a, "b2"_a, "eps"_a, "weight_decay"_a, "decoupled"_a);
}

void bind_adaptive(nb::module_& m) {
  nb::class_<nn::RMSprop, nn::Optimizer>(m, "RMSprop")
      .def(
          "__init__",
          [](nn::RMSprop* self, std::vector<Tensor> params, double lr, double alpha, double eps,
             double weight_decay, double momentum, bool centered) {
            const nn::RmsPropOptions options{.lr = lr,
                                             .alpha = alpha,
                                             .eps = eps,
                                             .momentum = momentum,
                                             .weight_decay = weight_decay,
                                             .centered = centered};
            new (self) nn::RMSprop(std::move(params), options, python_call_site());
          },
          "params"_a, "lr"_a, "alpha"_a, "eps"_a, "weight_decay"_a, "momentum"_a, "centered"_a);
  nb::class_<nn::Adagrad, nn::Optimizer>(m, "Adagrad")
      .def(
          "__init__",
          [](nn::Adagrad* self, std::vector<Tensor> params, double lr, double lr_decay, double eps,
             double weight_decay) {
            const nn::AdagradOptions options{
                .lr = lr, .lr_decay = lr_decay, .eps = eps, .weight_decay = weight_decay};
            new (self) nn::Adagrad(std::move(params), options, python_call_site());
          },
          "params"_a, "lr"_a, "lr_decay"_a, "eps"_a, "weight_decay"_a);
}

}  // namespace

void bind_optim(nb::module_& m) {
  m.def("take_pending_losses", [] { return take_pending_losses(Context::current()); });
  nb::class_<nn::Optimizer> o(m, "Optimizer");
  method(o, "zero_grad", &nn::Optimizer::zero_grad);
  computing_method(o, "step", [](nn::Optimizer& x) { x.step(CallSite()); });
  method(o, "schedule_step", [](nn::Optimizer& x) { return x.schedule_step(CallSite()); });
  o.def_prop_ro("lr", lr_of, "A Tensor: captured steps read it anew.");
  method(o, "set_lr", [](nn::Optimizer& x, double lr) { x.set_lr(lr, CallSite()); }, "lr"_a);
  o.def_prop_ro("state", state_of, "lr and what is kept per parameter, by name.");

  bind_sgd(m);
  bind_adam(m);
  bind_adaptive(m);
}

}  // namespace weft::python
