#include "weft/llm/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft::llm {

namespace {

// A position times a frequency that is rounded otherwise is another angle.
using Frequencies = std::vector<float>;

Frequencies plain(const Rope& r, double base) {
  Frequencies all;
  for (int64_t i = 0; i < r.size; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(r.size);
    all.push_back(static_cast<float>(std::pow(base, static_cast<double>(exponent))));
  }
  return all;
}

/// The frequencies' denominators times divisors.
Frequencies divided(Frequencies denominators, const std::vector<double>& divisors) {
  for (size_t i = 0; i < denominators.size(); ++i) {
    if (!divisors.empty()) denominators[i] *= static_cast<float>(divisors[i]);
    denominators[i] = 1.0F / denominators[i];
  }
  return denominators;
}

/// NTK-aware scaling that begins where training ended: a base with which the longest wave is as
/// much longer as the text is (transformers' "dynamic").
double dynamic_base(const Rope& r, int64_t context) {
  const double longer = static_cast<double>(context) / static_cast<double>(r.trained_context);
  if (longer <= 1 || r.size <= 2) return r.base;
  const auto size = static_cast<double>(r.size);
  return r.base * std::pow(r.factor * longer - (r.factor - 1), size / (size - 2));
}

/// Llama 3.1: long waves are stretched, short ones stay, those between are mixed.
void stretch_llama3(const Rope& r, Frequencies& f) {
  const double trained = static_cast<double>(r.trained_context);
  for (float& x : f) {
    const double wave = 2 * std::numbers::pi / static_cast<double>(x);
    if (wave < trained / r.high_frequency) continue;
    const auto slow = static_cast<float>(static_cast<double>(x) / r.factor);
    const double mix = (trained / wave - r.low_frequency) / (r.high_frequency - r.low_frequency);
    x = wave > trained / r.low_frequency
            ? slow
            : static_cast<float>((1 - mix) * static_cast<double>(slow) +
                                 mix * static_cast<double>(x));
  }
}

/// YaRN (Peng et al. 2023), "NTK by parts": the i-th pair turns so often within the trained
/// context; a ramp leads from those that stay to those that are stretched.
void stretch_yarn(const Rope& r, Frequencies& f) {
  const auto pair_of = [&](double turns) {
    const double trained = static_cast<double>(r.trained_context);
    return static_cast<double>(r.size) * std::log(trained / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(r.base));
  };
  double low = pair_of(r.fast), high = pair_of(r.slow);
  if (r.whole_bounds) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(r.size - 1));
  if (low == high) high += 0.001;
  for (size_t i = 0; i < f.size(); ++i) {
    const auto ramp =
        static_cast<float>(std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0));
    const float stretched = f[i] / static_cast<float>(r.factor);
    f[i] = stretched * ramp + f[i] * (1 - ramp);
  }
}

}  // namespace

double yarn_attention_factor(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

double rope_attention_factor(const Rope& r) {
  if (r.attention_factor != 0) return r.attention_factor;
  if (r.scaling == Rope::Scaling::Yarn && r.scale_log != 0 && r.scale_log_all != 0)
    return yarn_attention_factor(r.factor, r.scale_log) /
           yarn_attention_factor(r.factor, r.scale_log_all);
  if (r.scaling == Rope::Scaling::Yarn) return yarn_attention_factor(r.factor, 1);
  if (r.scaling == Rope::Scaling::LongRope && r.factor > 1)
    return std::sqrt(1 + std::log(r.factor) / std::log(static_cast<double>(r.trained_context)));
  return 1;
}

std::vector<float> rope_frequencies(const Rope& r, int64_t context) {
  const bool beyond = r.scaling == Rope::Scaling::LongRope && context > r.trained_context;
  const double base = r.scaling == Rope::Scaling::Dynamic ? dynamic_base(r, context) : r.base;
  Frequencies f = divided(plain(r, base), beyond ? r.long_divisors : r.divisors);
  if (r.scaling == Rope::Scaling::Linear || r.scaling == Rope::Scaling::Proportional)
    for (float& x : f) x /= static_cast<float>(r.factor);
  if (r.scaling == Rope::Scaling::Llama3) stretch_llama3(r, f);
  if (r.scaling == Rope::Scaling::Yarn) stretch_yarn(r, f);
  return f;
}

RopeTable rope_table(const Rope& rope, int64_t context) {
  if (rope.size == 0) return {};
  const Frequencies f = rope_frequencies(rope, context);
  const double factor = rope_attention_factor(rope);
  std::vector<float> cosine, sine;
  for (int64_t at = 0; at < context; ++at)
    for (const float frequency : f) {
      const auto angle = static_cast<double>(static_cast<float>(at) * frequency);
      cosine.push_back(static_cast<float>(std::cos(angle) * factor));
      sine.push_back(static_cast<float>(std::sin(angle) * factor));
    }
  const Dims shape = {context, rope.size / 2};
  return {Tensor::from(cosine, shape), Tensor::from(sine, shape)};
}

Tensor turned(const Tensor& x, const RopeTable& table, const Tensor& positions, bool neighbours) {
  if (!table.cosine.defined()) return x;
  const int64_t half = table.cosine.size(1), size = x.size(3);
  const Tensor c = table.cosine.index({positions}).unsqueeze(2);  // the same for all heads
  const Tensor s = table.sine.index({positions}).unsqueeze(2);
  const auto side = [&](int64_t which) {
    return neighbours ? x.index({kEllipsis, Slice(which, 2 * half, 2)})
                      : x.index({kEllipsis, Slice(which * half, (which + 1) * half)});
  };
  const Tensor a = side(0), b = side(1);
  const Tensor real = a * c - b * s, imaginary = b * c + a * s;
  const Tensor y = neighbours ? Tensor::stack({real, imaginary}, -1).flatten(-2, -1)
                              : Tensor::cat({real, imaginary}, -1);
  if (2 * half == size) return y;
  return Tensor::cat({y, x.index({kEllipsis, Slice(2 * half, size)})}, -1);
}

}  // namespace weft::llm
