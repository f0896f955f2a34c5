// Random numbers of keys; weft/random.py gives them JAX's names.
#include "weft/tensor/random_keys.h"

#include "weft/python/bindings.h"

namespace weft::python {

void bind_random_keys(nb::module_& m) {
  method(m, "random_key", [](uint64_t seed) { return random_key(seed, CallSite()); }, "seed"_a);
  method(
      m, "split_key",
      [](const Tensor& key, int64_t count) { return split_key(key, count, CallSite()); }, "key"_a,
      "count"_a);
  method(
      m, "fold_in", [](const Tensor& key, int64_t data) { return fold_in(key, data, CallSite()); },
      "key"_a, "data"_a);
  method(
      m, "keyed_bits",
      [](const Tensor& key, const Dims& shape, DType dtype) {
        return keyed_bits(key, shape, dtype, CallSite());
      },
      "key"_a, "shape"_a, "dtype"_a);
  method(
      m, "keyed_uniform",
      [](const Tensor& key, const Dims& shape, DType dtype) {
        return keyed_uniform(key, shape, dtype, CallSite());
      },
      "key"_a, "shape"_a, "dtype"_a);
}

}  // namespace weft::python
