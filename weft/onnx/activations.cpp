#include "weft/onnx/activations.h"

#include <cctype>
#include <cmath>
#include <optional>

namespace weft::onnx {

namespace {

struct Row {
  std::string_view name;
  std::optional<double> alpha, beta;  ///< what they are if not given; nothing: has none
  Tensor (*function)(const Tensor& x, double alpha, double beta);
};

constexpr Row kActivations[] = {
    {"affine", 1, 0, [](const Tensor& x, double a, double b) { return x * a + b; }},
    {"elu", 1, {}, [](const Tensor& x, double a, double) { return x.elu(a); }},
    {"hardsigmoid", 0.2, 0.5,
     [](const Tensor& x, double a, double b) { return (x * a + b).clamp(0, 1); }},
    {"leakyrelu", 0.01, {}, [](const Tensor& x, double a, double) { return x.leaky_relu(a); }},
    {"relu", {}, {}, [](const Tensor& x, double, double) { return x.relu(); }},
    {"scaledtanh", 1, 1, [](const Tensor& x, double a, double b) { return (x * b).tanh() * a; }},
    {"sigmoid", {}, {}, [](const Tensor& x, double, double) { return x.sigmoid(); }},
    {"softplus", {}, {}, [](const Tensor& x, double, double) { return x.softplus(); }},
    {"softsign", {}, {}, [](const Tensor& x, double, double) { return x.softsign(); }},
    {"tanh", {}, {}, [](const Tensor& x, double, double) { return x.tanh(); }},
    {"thresholdedrelu",
     1,
     {},
     [](const Tensor& x, double a, double) { return (x > a).where(x, 0).cast(x.dtype()); }},
};

const Row& row_of(const NodeCall& call, std::string_view name) {
  std::string lower(name);  // case does not count
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Row& row : kActivations)
    if (row.name == lower) return row;
  call.refuse("activation '{}' is not known", name);
}

}  // namespace

Activations activations_of(const NodeCall& call, size_t count,
                           std::initializer_list<std::string_view> usual) {
  std::vector<std::string> names = call.texts("activations");
  if (names.empty())
    while (names.size() < count) names.insert(names.end(), usual.begin(), usual.end());
  if (names.size() != count) call.refuse("{} activations are listed: give {}", names.size(), count);
  const std::vector<double> alphas = call.numbers("activation_alpha"),
                            betas = call.numbers("activation_beta");
  size_t alpha = 0, beta = 0;
  const auto next = [](const std::vector<double>& given, size_t& at,
                       std::optional<double> usually) {
    if (!usually) return 0.0;
    return at < given.size() ? given[at++] : *usually;
  };
  Activations all;
  for (const std::string& name : names) {
    const Row& row = row_of(call, name);
    const double a = next(alphas, alpha, row.alpha), b = next(betas, beta, row.beta);
    all.push_back({row.function, a, b});
  }
  return all;
}

}  // namespace weft::onnx
