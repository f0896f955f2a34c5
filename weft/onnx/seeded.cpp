#include "weft/onnx/seeded.h"

#include <bit>

#include "weft/tensor/random.h"

namespace weft::onnx {

Values with_seed(const NodeCall& call, FunctionRef<Values()> draw) {
  if (!call.has("seed")) return draw();
  const bool whole = call.node().find("seed")->type == Attribute::Type::Int;
  const auto seed = whole ? static_cast<uint64_t>(call.integer("seed"))
                          : std::bit_cast<uint64_t>(call.number("seed"));
  const DrawScope scope(seed);
  return draw();
}

}  // namespace weft::onnx
