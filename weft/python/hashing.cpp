// Hashes of bytes.
#include "weft/tensor/hash.h"

#include "weft/base/error.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

/// By name, or (rate, suffix) as tinygrad takes it: then half of the capacity is the result.
Tensor keccak_of(const Tensor& x, nb::handle cfg) {
  if (PyUnicode_Check(cfg.ptr())) return keccak(x, nb::cast<std::string>(cfg), 0, CallSite());
  const auto [rate, suffix] = nb::cast<std::pair<int64_t, int64_t>>(cfg);
  constexpr int64_t kStateBytes = 200;
  return keccak(x, rate, suffix, (kStateBytes - rate) / 2, CallSite());
}

}  // namespace

void bind_hashing(TensorClass& c) {
  method(
      c, "keccak", keccak_of, "cfg"_a = "sha3_256",
      "SHA-3 and SHAKE of the last axis (uint8): \"sha3_224\", \"sha3_256\", \"shake_128\", ..., "
      "or (rate, suffix).");
  method(
      c, "hash", [](const Tensor& x) { return content_hash(x, CallSite()); },
      "16 bytes for the contents: a tree of shake_128 over chunks of 1 MiB.");
}

}  // namespace weft::python
