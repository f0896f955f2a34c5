// weft._core: the extension module under the Python package.
#include "weft/python/bindings.h"
#include "weft/python/host_view.h"

namespace weft::python {

namespace {

TensorClass tensor_class(nb::module_& m) {
  return TensorClass(
      m, "Tensor", nb::type_slots(kBufferSlots), nb::is_weak_referenceable(),
      "A multidimensional array of one dtype. Operations record what to compute; nothing runs "
      "before "
      "realize(), item(), numpy() or the like.\n\n"
      "Tensor(data, device=None, dtype=None, requires_grad=None): data is a number, nested lists, "
      "bytes, a NumPy array, a path (the file's bytes), or None (no elements).");
}

void bind_tensor(nb::module_& m) {
  TensorClass c = tensor_class(m);
  bind_creation(c);
  bind_random(c);
  bind_operators(c);
  bind_elementwise(c);
  bind_movement(c);
  bind_pieces(c);
  bind_indexing(c);
  bind_selection(c);
  bind_reductions(c);
  bind_statistics(c);
  bind_products(c);
  bind_contractions(c);
  bind_windows(c);
  bind_losses(c);
  bind_hashing(c);
  bind_autograd(c);
  bind_values(c);
  bind_linalg(m, c);
  bind_dlpack(m, c);
}

}  // namespace

}  // namespace weft::python

NB_MODULE(_core, m) {
  using namespace weft::python;  // NOLINT: this is its module
  nb::set_leak_warnings(false);  // what the interpreter leaves at its end is not ours to report
  bind_errors(m);
  bind_dtypes(m);
  bind_dims(m);
  bind_tensor(m);
  bind_context(m);
  bind_jit(m);
  bind_optim(m);
  bind_training(m);
  bind_data_sets(m);
  bind_transforms(m);
  bind_custom_kernel(m);
  bind_random_keys(m);
  bind_passes(m);
  bind_files(m);
  bind_onnx(m);
  bind_gguf(m);
  bind_text(m);
  bind_llm(m);
  bind_llm_training(m);
  bind_viz(m);
}
