// Gradients: leaves, backward(), gradient().

#include "weft/base/error.h"
#include "weft/graph/node_map.h"
#include "weft/python/bindings.h"
#include "weft/tensor/access.h"
#include "weft/tensor/training.h"

namespace weft::python {

namespace {

/// True: asked for. False: never. None: where a loss depends on none that asked.
nb::object requires_grad(const Tensor& x) {
  if (x.requires_grad()) return nb::bool_(true);
  if (x.cell()->offered == false || TensorAccess::is_detached(x)) return nb::bool_(false);
  return nb::none();
}

/// A view that is all there is of its storage becomes a tensor of its own; of another it would be a
/// leaf of which the whole knows nothing.
void own_if_alone(Tensor& x) {
  if (x.is_view() && TensorAccess::shared(x).use_count() == 1) x = x.contiguous(CallSite());
}

Tensor& set_requires_grad(Tensor& x, std::optional<bool> on) {
  if (on == true) own_if_alone(x);
  if (on == true) return x.requires_grad_(true, CallSite());
  if (x.requires_grad()) x.requires_grad_(false, CallSite());
  offer_leaf(x, on.value_or(is_float(x.dtype())));
  return x;
}

nb::object gradient_of(const Tensor& x) {
  const Tensor g = x.grad();
  if (g.defined()) return nb::cast(g);
  constexpr const char* kWhy =
      "grad of a tensor that was computed: backward() fills the tensors that say requires_grad, "
      "where a loss depends on any; call requires_grad_() on this one before it is used";
  if (lacks_gradient(x) && PyErr_WarnEx(PyExc_UserWarning, kWhy, 1) != 0) throw nb::python_error();
  return nb::none();
}

void set_gradient(Tensor& x, const Tensor* g) {
  if (g)
    x.set_grad(*g, python_call_site());
  else
    x.zero_grad();
}

/// One number is a gradient of one number, whatever its axes.
Tensor upstream_for(const Tensor& x, const Tensor& gradient) {
  const bool one = x.ndim() == 0 && gradient.dims().is_static() && gradient.numel() == 1;
  return one ? gradient.reshape({}, CallSite()) : gradient;
}

/// Returns the tensor: loss = model(x).mean().backward().
nb::object backward(TensorObject self, const Tensor* gradient) {
  const Tensor& x = tensor_of(self);
  if (gradient)
    x.backward(upstream_for(x, *gradient), CallSite());
  else
    x.backward(CallSite());
  return nb::borrow(self);
}

/// A gradient of 0 where there is no path would hide that a tensor was realized in between.
void require_path(const Tensor& x, const std::vector<Tensor>& targets) {
  const OpScope scope(x, CallSite());
  const Histories histories(scope.context);
  const auto whole = [&](const Tensor& t) { return histories.behind(scope.g, t.node()); };
  NodeRef root = whole(x);
  if (!reads_cut_off(scope.context, root)) return;
  NodeMap<bool> reached;
  for (NodeRef n : Toposort(root)) reached[n] = true;
  for (size_t i = 0; i < targets.size(); ++i)
    if (!reached.contains(whole(targets[i])))
      fail("gradient.path",
           "this was not computed from target {} of shape {}, or its history is gone because "
           "something in between was realized; materialize_grads=True gives zeros",
           i, targets[i].dims().text());
}

std::vector<Tensor> gradients(const Tensor& x, const nb::args& targets, const Tensor* gradient,
                              bool materialize) {
  std::vector<Tensor> wanted;
  for (nb::handle t : targets) wanted.push_back(nb::cast<Tensor>(t));
  if (!materialize) require_path(x, wanted);
  return gradient ? x.gradient(wanted, upstream_for(x, *gradient), CallSite())
                  : x.gradient(wanted, CallSite());
}

template <class F>
auto returning_self(F f) {
  return [f](TensorObject self, bool on) {
    f(tensor_of(self), on);
    return nb::borrow(self);
  };
}

}  // namespace

void bind_autograd(TensorClass& c) {
  c.def_prop_rw("grad", gradient_of, set_gradient, nb::arg("gradient").none(),
                nb::for_getter(nb::sig("def grad(self) -> Tensor | None")),
                "The gradient that backward() filled, or None.");
  c.def_prop_rw(
      "requires_grad", requires_grad,
      [](Tensor& x, std::optional<bool> on) { set_requires_grad(x, on); }, nb::arg("on").none(),
      nb::for_getter(nb::sig("def requires_grad(self) -> bool | None")),
      "True: backward() fills grad. False: never. None, the default: where the loss depends on no "
      "tensor that says True; then it fills what was computed on the way, too.");
  method(c, "requires_grad_", returning_self([](Tensor& x, bool on) { set_requires_grad(x, on); }),
         nb::sig("def requires_grad_(self, requires_grad: bool = True) -> Tensor"),
         "requires_grad"_a = true, "Sets requires_grad.");
  method(c, "is_param_", returning_self([](Tensor& x, bool on) { set_requires_grad(x, on); }),
         nb::sig("def is_param_(self, is_param: bool = True) -> Tensor"), "is_param"_a = true,
         "is_param_(False): neither backward() nor an optimizer touches this tensor.");
  c.def_prop_rw(
      "is_param", [](const Tensor& x) { return x.cell()->offered != false; },
      [](Tensor& x, bool on) { set_requires_grad(x, on); },
      "False: neither backward() nor an optimizer touches this tensor.");
  c.def_prop_rw_static(
      "training", [](nb::handle) { return is_training(); },
      [](nb::handle, bool on) { set_training(on); },
      "Whether dropout and batch norm train, of this thread; Tensor.train() sets it for a block.");
  method(
      c, "backward", backward,
      nb::sig("def backward(self, gradient: Tensor | None = None) -> Tensor"),
      "gradient"_a = nb::none(),
      "Adds d this / d leaf to the grad of every leaf that this depends on, lazily. Leaves are the "
      "tensors with requires_grad=True; where there are none, all floats made from data, of zeros "
      "or at random. Returns this.");
  method(c, "gradient", gradients, "targets"_a, "gradient"_a = nb::none(),
         "materialize_grads"_a = false,
         "d this / d target for each, as differentiable tensors. Where there is no path: a "
         "ValueError, or zeros with materialize_grads=True.");
  method(c, "detach", plain(&Tensor::detach), "The same values; gradients stop here.");
}

}  // namespace weft::python
