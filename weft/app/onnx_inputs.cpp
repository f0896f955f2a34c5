#include "weft/app/onnx_inputs.h"

#include <charconv>

#include "weft/base/error.h"
#include "weft/io/npy.h"

namespace weft {

namespace {

std::pair<std::string, std::string> split(const std::string& text, const char* option,
                                          const char* form) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    fail("onnx", "{} {} has to be {}", option, text, form);
  return {text.substr(0, at), text.substr(at + 1)};
}

/// Normal floats; integers of 0 and 1, which are positions and classes of any model.
onnx::Value random_like(const onnx::Value& x) {
  if (x.kind() != onnx::Value::Kind::Tensor) return x;
  const DType d = x.dtype();
  if (is_float(d)) return {Tensor::randn(x.dims()).cast(d), x.type()};
  return {Tensor::randint(0, 2, x.dims()).cast(d), x.type()};
}

}  // namespace

std::map<std::string, int64_t> named_sizes(const OnnxOptions& options) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& text : options.sizes) {
    const auto [name, number] = split(text, "--size", "NAME=N");
    int64_t size = 0;
    const auto [end, problem] =
        std::from_chars(number.data(), number.data() + number.size(), size);
    if (problem != std::errc() || *end != '\0' || size < 0)
      fail("onnx", "--size {}: '{}' is no size", text, number);
    sizes[name] = size;
  }
  return sizes;
}

onnx::NamedValues named_inputs(const onnx::OnnxRunner& runner, const OnnxOptions& options) {
  Tensor::manual_seed(static_cast<uint64_t>(options.seed));
  onnx::NamedValues inputs;
  for (auto& [name, value] : runner.empty_inputs(named_sizes(options)))
    inputs.emplace(name, random_like(value));
  for (const std::string& text : options.inputs) {
    const auto [name, file] = split(text, "--input", "NAME=FILE.npy");
    const onnx::Value constant{read_npy(file)};
    inputs.insert_or_assign(name, onnx::Value(constant.tensor(), constant.type()));
  }
  std::vector<Tensor> tensors;
  for (const auto& [name, value] : inputs)
    if (value.kind() == onnx::Value::Kind::Tensor) tensors.push_back(value.tensor());
  realize(tensors);
  return inputs;
}

}  // namespace weft
