#include "weft/onnx/operators.h"

#include <array>

namespace weft::onnx {

std::span<const std::span<const Operator>> operator_families() {
  static const std::array kFamilies = {
      attention_operators(),
      contrib_attention_operators(),
      contrib_gated_operators(),
      contrib_operators(),
      contrib_quantised_operators(),
      control_operators(),
      convolution_operators(),
      elementwise_operators(),
      generator_operators(),
      image_operators(),
      indexing_operators(),
      loss_operators(),
      ml_operators(),
      normalisation_operators(),
      product_operators(),
      quantised_operators(),
      recurrent_operators(),
      reduction_operators(),
      removed_operators(),
      shape_operators(),
      text_operators(),
  };
  return kFamilies;
}

bool is_random(const Node& node) {
  return node.op.starts_with("Random") || node.op == "Bernoulli" || node.op == "Multinomial" ||
         node.op == "Dropout";
}

const Operator* find_operator(std::string_view domain, std::string_view name, int64_t opset) {
  const Operator* newest = nullptr;
  for (const std::span<const Operator> family : operator_families())
    for (const Operator& o : family)
      if (o.name == name && o.domain == domain && o.since <= opset &&
          (!newest || o.since > newest->since))
        newest = &o;
  return newest;
}

}  // namespace weft::onnx
