// RotaryEmbedding: pairs of numbers turned by angles that grow with the position (Su et al. 2021).
// Semantics: the ONNX operator specification.
#include "weft/onnx/attention_operators.h"
#include "weft/onnx/axes.h"

namespace weft::onnx {

namespace {

/// (batch, positions, turned / 2), beside heads: by position ids from a table of all positions.
Tensor angles(const NodeCall& call, size_t input, bool heads_first) {
  const Tensor& cache = call.tensor(input);
  const Tensor at = call.has(3) ? cache.index({call.tensor(3)}) : cache;
  if (at.ndim() != 3)
    call.refuse(
        "angles of shape {}: give (batch, positions, size / 2), or (all positions, size / "
        "2) and position_ids",
        cache.dims().text());
  return at.unsqueeze(heads_first ? 1 : 2);
}

}  // namespace

Values rotary_embedding(const NodeCall& call) {
  const Tensor& given = call.tensor(0);
  const bool heads_first = given.ndim() == 4;
  if (given.ndim() != 3 && !heads_first)
    call.refuse("input of shape {}: give three or four axes", given.dims().text());
  const Tensor x = heads_first ? given : given.unflatten(2, {call.integer("num_heads"), -1});
  const int64_t asked = call.integer("rotary_embedding_dim", 0), size = x.size(3);
  const int64_t turned = asked == 0 ? size : asked, half = turned / 2;
  const Tensor cos = angles(call, 1, heads_first), sin = angles(call, 2, heads_first);
  if (turned % 2 != 0 || turned > size || !(cos.dim(-1) == Dim(half)) ||
      !(sin.dim(-1) == Dim(half)))
    call.refuse("{} of {} numbers are turned by {} and {} angles: give half as many", turned, size,
                cos.dim(-1).text(), sin.dim(-1).text());
  const bool interleaved = call.integer("interleaved", 0) != 0;
  const auto side = [&](int64_t which) {
    return interleaved ? x.index({kEllipsis, Slice(which, turned, 2)})
                       : x.index({kEllipsis, Slice(which * half, (which + 1) * half)});
  };
  const Tensor a = side(0), b = side(1);
  const Tensor real = cos * a - sin * b, imaginary = sin * a + cos * b;
  Tensor y = interleaved ? Tensor::stack({real, imaginary}, -1).flatten(-2, -1)
                         : Tensor::cat({real, imaginary}, -1);
  if (turned < size) y = Tensor::cat({y, x.index({kEllipsis, Slice(turned, size)})}, -1);
  return {y.reshape(given.dims())};
}

}  // namespace weft::onnx
