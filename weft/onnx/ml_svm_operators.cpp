// SVMClassifier and SVMRegressor, on the host: kernels of rows and support vectors, then votes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/base/interrupt.h"
#include "weft/onnx/host.h"
#include "weft/onnx/ml_models.h"
#include "weft/onnx/ml_scores.h"

namespace weft::onnx {
namespace {

enum class KernelType : uint8_t { Linear, Polynomial, Radial, Sigmoid };

struct Svm {
  KernelType type = KernelType::Linear;
  double gamma = 0, offset = 0, degree = 0;
  int64_t features = 0, rows = 0;
  std::vector<float> x;                            // (rows, features)
  std::vector<double> vectors, coefficients, rho;  // vectors: (supports, features)

  double kernel(const float* a, const double* b) const {
    double sum = 0;
    for (int64_t i = 0; i < features; ++i)
      sum += type == KernelType::Radial ? (a[i] - b[i]) * (a[i] - b[i]) : a[i] * b[i];
    switch (type) {
      case KernelType::Polynomial: return std::pow(gamma * sum + offset, degree);
      case KernelType::Radial: return std::exp(-gamma * sum);
      case KernelType::Sigmoid: return std::tanh(gamma * sum + offset);
      default: return sum;
    }
  }
  // Of one row with every support vector.
  std::vector<double> kernels(int64_t row, int64_t supports) const {
    poll_interrupt();
    std::vector<double> all(static_cast<size_t>(supports));
    for (int64_t s = 0; s < supports; ++s)
      all[static_cast<size_t>(s)] =
          kernel(x.data() + row * features, vectors.data() + s * features);
    return all;
  }
};

Svm read_svm(const NodeCall& call, int64_t supports) {
  Svm svm;
  constexpr std::string_view kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  const std::string type = call.text("kernel_type", "LINEAR");
  const auto* found = std::find(std::begin(kNames), std::end(kNames), type);
  if (found == std::end(kNames))
    call.refuse("kernel_type {}: LINEAR, POLY, RBF or SIGMOID", quoted_name(type));
  svm.type = static_cast<KernelType>(found - std::begin(kNames));
  const std::vector<double> parameters = call.numbers("kernel_params", {0, 0, 0});
  if (parameters.size() != 3)
    call.refuse("kernel_params has {} elements: gamma, coef0 and degree", parameters.size());
  svm.gamma = parameters[0], svm.offset = parameters[1], svm.degree = parameters[2];
  const Tensor rows = feature_rows(call, 0).cast(DType::F32);
  svm.x = rows.to_vector<float>();
  svm.rows = rows.size(0), svm.features = rows.size(1);
  svm.vectors = call.numbers("support_vectors");
  svm.coefficients = call.numbers("coefficients");
  svm.rho = call.numbers("rho");
  const auto have = static_cast<int64_t>(svm.vectors.size());
  if (supports < 0 || (supports > 0 && (have % supports != 0 || have / supports != svm.features)))
    call.refuse("support_vectors has {} elements for {} vectors of the input's {} features", have,
                supports, svm.features);
  return svm;
}

// Probabilities of k classes from those r[i, j] of i against j (Wu, Lin and Weng 2004, algorithm
// 2): the p that minimise the sum of (r[j, i] p[i] - r[i, j] p[j])^2.
std::vector<double> coupled(const std::vector<double>& r, size_t k) {
  std::vector<double> q(k * k, 0), p(k, 1.0 / static_cast<double>(k)), qp(k);
  for (size_t t = 0; t < k; ++t)
    for (size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = -r[j * k + t] * r[t * k + j];
    }
  for (int round = 0; round < 100; ++round) {
    double pqp = 0, worst = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = std::inner_product(p.begin(), p.end(), q.begin() + static_cast<std::ptrdiff_t>(t * k),
                                 0.0);
      pqp += p[t] * qp[t];
    }
    for (const double x : qp) worst = std::max(worst, std::abs(x - pqp));
    if (worst < 0.005 / static_cast<double>(k)) break;
    for (size_t t = 0; t < k; ++t) {  // p[t] moves to its best place, then p is scaled to sum 1
      const double own = q[t * k + t], move = (pqp - qp[t]) / own, scale = 1 / (1 + move);
      p[t] += move;
      pqp = (pqp + move * (move * own + 2 * qp[t])) * scale * scale;
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + move * q[t * k + j]) * scale;
        p[j] *= scale;
      }
    }
  }
  return p;
}

struct Classified {
  std::vector<double> scores;  // of pairs, or probabilities of classes
  std::vector<int64_t> votes;
};

// One against one: every pair of classes decides by the support vectors of both.
struct Pairs {
  const Svm& svm;
  size_t classes;
  std::vector<int64_t> starts;  // of each class's vectors, and the end
  std::vector<double> a, b;     // of the sigmoids that make probabilities; empty: none are made

  double decision(const std::vector<double>& kernels, size_t i, size_t j, size_t pair) const {
    const auto supports = static_cast<size_t>(starts.back());
    double sum = svm.rho[pair];
    for (auto s = static_cast<size_t>(starts[i]); s < static_cast<size_t>(starts[i + 1]); ++s)
      sum += svm.coefficients[(j - 1) * supports + s] * kernels[s];
    for (auto s = static_cast<size_t>(starts[j]); s < static_cast<size_t>(starts[j + 1]); ++s)
      sum += svm.coefficients[i * supports + s] * kernels[s];
    return sum;
  }

  Classified classify(int64_t row) const {
    const std::vector<double> kernels = svm.kernels(row, starts.back());
    Classified all{{}, std::vector<int64_t>(classes)};
    std::vector<double> r(classes * classes);
    for (size_t i = 0, pair = 0; i < classes; ++i)
      for (size_t j = i + 1; j < classes; ++j, ++pair) {
        const double sum = decision(kernels, i, j, pair);
        all.scores.push_back(sum);
        ++all.votes[sum > 0 ? i : j];
        if (a.empty()) continue;
        const double p = 1 / (1 + std::exp(sum * a[pair] + b[pair]));
        r[i * classes + j] = std::clamp(p, 1e-7, 1 - 1e-7);
        r[j * classes + i] = 1 - r[i * classes + j];
      }
    if (!a.empty())
      all.scores = classes == 2 ? std::vector<double>{r[1], r[2]} : coupled(r, classes);
    return all;
  }
};

Pairs read_pairs(const NodeCall& call, const Svm& svm, const std::vector<int64_t>& per_class) {
  Pairs pairs{svm, per_class.size(), {0}, call.numbers("prob_a"), call.numbers("prob_b")};
  for (const int64_t count : per_class) pairs.starts.push_back(pairs.starts.back() + count);
  const size_t k = per_class.size(), count = k * (k - 1) / 2;
  const auto supports = static_cast<size_t>(pairs.starts.back());
  if (svm.rho.size() != count || svm.coefficients.size() != (k - 1) * supports)
    call.refuse("{} rho and {} coefficients for {} classes and {} vectors: {} and {}",
                svm.rho.size(), svm.coefficients.size(), k, supports, count, (k - 1) * supports);
  if (pairs.a.size() != pairs.b.size() || (!pairs.a.empty() && pairs.a.size() != count))
    call.refuse("prob_a has {} elements, prob_b {}: none, or {} each", pairs.a.size(),
                pairs.b.size(), count);
  return pairs;
}

// Without support vectors: a product with one row of coefficients for each class.
Classified linear_scores(const Svm& svm, int64_t row, size_t classes) {
  Classified all{{}, std::vector<int64_t>(classes)};
  for (size_t c = 0; c < classes; ++c) {
    const double* weights = svm.coefficients.data() + static_cast<int64_t>(c) * svm.features;
    all.scores.push_back(svm.kernel(svm.x.data() + row * svm.features, weights) + svm.rho[0]);
  }
  const auto best = std::max_element(all.scores.begin(), all.scores.end()) - all.scores.begin();
  all.votes[static_cast<size_t>(best)] = 1;
  return all;
}

int64_t total_of(const NodeCall& call, const std::vector<int64_t>& per_class) {
  int64_t total = 0;
  for (const int64_t count : per_class) {
    if (count < 0 || count > (int64_t{1} << 31))
      call.refuse("vectors_per_class holds {}: at least 0", count);
    total += count;
  }
  return total;
}

}  // namespace

Values svm_classifier(const NodeCall& call) {
  const Labels labels = Labels::of(call, "classlabels_ints", "classlabels_strings");
  const std::vector<int64_t> per_class = call.ints("vectors_per_class");
  const Svm svm = read_svm(call, total_of(call, per_class));
  const bool linear = svm.vectors.empty();
  if (!linear && per_class.size() != labels.size())
    call.refuse("vectors_per_class has {} elements for {} labels: one each", per_class.size(),
                labels.size());
  if (linear && (svm.rho.empty() || static_cast<int64_t>(svm.coefficients.size()) !=
                                        static_cast<int64_t>(labels.size()) * svm.features))
    call.refuse("{} coefficients for {} labels and {} features: as many as both make",
                svm.coefficients.size(), labels.size(), svm.features);
  const std::optional<Pairs> pairs =
      linear ? std::nullopt : std::optional<Pairs>(read_pairs(call, svm, per_class));
  std::vector<int64_t> places;
  std::vector<double> scores;
  for (int64_t row = 0; row < svm.rows; ++row) {
    const Classified one = pairs ? pairs->classify(row) : linear_scores(svm, row, labels.size());
    places.push_back(std::max_element(one.votes.begin(), one.votes.end()) - one.votes.begin());
    scores.insert(scores.end(), one.scores.begin(), one.scores.end());
  }
  const size_t k = labels.size();
  const bool probabilities = pairs && !pairs->a.empty();
  const auto width = static_cast<int64_t>(pairs && !probabilities ? k * (k - 1) / 2 : k);
  const Tensor given = host_numbers(scores, {svm.rows, width}, DType::F32).tensor();
  const PostTransform post = post_transform_of(call);
  const bool one = width == 1;
  return {labels.at(places, {svm.rows}),
          one ? both_classes(given, post, post == PostTransform::None) : transformed(given, post)};
}

Values svm_regressor(const NodeCall& call) {
  const int64_t supports = call.integer("n_supports", 0);
  const Svm svm = read_svm(call, supports);
  const int64_t coefficients = supports > 0 ? supports : svm.features;
  if (svm.rho.empty() || static_cast<int64_t>(svm.coefficients.size()) != coefficients)
    call.refuse("{} coefficients and {} rho: {} and 1", svm.coefficients.size(), svm.rho.size(),
                coefficients);
  const bool one_class = call.integer("one_class", 0) != 0;
  std::vector<double> scores;
  for (int64_t row = 0; row < svm.rows; ++row) {
    double sum = svm.rho[0];
    if (supports == 0) {
      sum += svm.kernel(svm.x.data() + row * svm.features, svm.coefficients.data());
    } else {
      const std::vector<double> kernels = svm.kernels(row, supports);
      sum += std::inner_product(kernels.begin(), kernels.end(), svm.coefficients.begin(), 0.0);
    }
    scores.push_back(!one_class ? sum : sum > 0 ? 1 : -1);
  }
  return {
      regressed(host_numbers(scores, {svm.rows, 1}, DType::F32).tensor(), post_transform_of(call))};
}

}  // namespace weft::onnx
