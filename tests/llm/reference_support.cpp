#include <cmath>

#include "tests/llm/reference.h"

namespace weft::llm {
namespace {

using Row = std::vector<double>;

class Reference {
 public:
  Reference(const Config& config, const Weights& weights) : c_(config), weights_(weights) {}

  /// The next token's logits; remembers keys and values.
  Row next(TokenId token) {
    const std::vector<float>& table = numbers("token_embd.weight");
    Row x(table.begin() + token * c_.dim, table.begin() + (token + 1) * c_.dim);
    keys_.resize(static_cast<size_t>(c_.layers));
    values_.resize(static_cast<size_t>(c_.layers));
    for (int64_t i = 0; i < c_.layers; ++i) {
      const std::string at = "blk." + std::to_string(i) + ".";
      add(x, attention(normed(x, at + "attn_norm"), i, at));
      const Row y = normed(x, at + "ffn_norm");
      Row gate = product(at + "ffn_gate", y);
      const Row up = product(at + "ffn_up", y);
      for (size_t k = 0; k < gate.size(); ++k) gate[k] = gate[k] / (1 + std::exp(-gate[k])) * up[k];
      add(x, product(at + "ffn_down", gate));
    }
    ++position_;
    return product("output", normed(x, "output_norm"));
  }

 private:
  const std::vector<float>& numbers(const std::string& name) {
    std::vector<float>& known = numbers_[name];
    if (known.empty()) known = weights_.find(name)->value().to_vector<float>();
    return known;
  }
  Row product(const std::string& name, const Row& x) {
    const std::vector<float>& w = numbers(name + ".weight");
    Row y(w.size() / x.size());
    for (size_t i = 0; i < y.size(); ++i)
      for (size_t k = 0; k < x.size(); ++k) y[i] += static_cast<double>(w[i * x.size() + k]) * x[k];
    if (weights_.find(name + ".bias") != nullptr)
      for (size_t i = 0; i < y.size(); ++i) y[i] += static_cast<double>(numbers(name + ".bias")[i]);
    return y;
  }
  static void add(Row& x, const Row& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  Row normed(const Row& x, const std::string& name) {
    if (weights_.find(name + ".weight") == nullptr) return x;
    double square = 0;
    for (const double v : x) square += v * v;
    const double scale = 1 / std::sqrt(square / static_cast<double>(x.size()) + c_.norm_epsilon);
    Row y = x;
    for (size_t i = 0; i < x.size(); ++i)
      y[i] *= scale * static_cast<double>(numbers(name + ".weight")[i]);
    return y;
  }
  /// One head: normed, then turned by the position.
  Row placed(const Row& all, int64_t head, const std::string& norm) {
    Row x(all.begin() + head * c_.head_dim, all.begin() + (head + 1) * c_.head_dim);
    x = normed(x, norm);
    const int64_t half = c_.rope.size / 2;
    Row y = x;
    for (int64_t i = 0; i < half; ++i) {
      const double part = 2 * static_cast<double>(i) / static_cast<double>(c_.rope.size);
      const double angle = position_ * std::pow(c_.rope.base, -part);
      const auto a = static_cast<size_t>(c_.rope.neighbours ? 2 * i : i);
      const auto b = static_cast<size_t>(c_.rope.neighbours ? 2 * i + 1 : i + half);
      y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      y[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
    }
    return y;
  }
  Row attention(const Row& x, int64_t layer, const std::string& at) {
    const Row q = product(at + "attn_q", x), k = product(at + "attn_k", x);
    const Row v = product(at + "attn_v", x);
    auto& keys = keys_[static_cast<size_t>(layer)];
    auto& values = values_[static_cast<size_t>(layer)];
    for (int64_t h = 0; h < c_.kv_heads; ++h) {
      keys.push_back(placed(k, h, at + "attn_k_norm"));
      values.emplace_back(v.begin() + h * c_.head_dim, v.begin() + (h + 1) * c_.head_dim);
    }
    Row mixed;
    for (int64_t h = 0; h < c_.heads; ++h) {
      const Row one = placed(q, h, at + "attn_q_norm");
      const auto from = static_cast<size_t>(h / (c_.heads / c_.kv_heads));
      const Row y = mix(one, keys, values, from);
      mixed.insert(mixed.end(), y.begin(), y.end());
    }
    return product(at + "attn_output", mixed);
  }
  Row mix(const Row& q, const std::vector<Row>& keys, const std::vector<Row>& values, size_t from) {
    Row y(q.size());
    double sum = 0;
    for (size_t t = from; t < keys.size(); t += static_cast<size_t>(c_.kv_heads)) {
      double score = 0;
      for (size_t i = 0; i < q.size(); ++i) score += q[i] * keys[t][i];
      const double share = std::exp(score / std::sqrt(static_cast<double>(q.size())));
      sum += share;
      for (size_t i = 0; i < y.size(); ++i) y[i] += share * values[t][i];
    }
    for (double& v : y) v /= sum;
    return y;
  }

  const Config& c_;
  const Weights& weights_;
  std::map<std::string, std::vector<float>> numbers_;
  std::vector<std::vector<Row>> keys_, values_;  // of layers: heads of one position after the other
  double position_ = 0;
};

}  // namespace

std::vector<double> reference_logits(const Config& config, const Weights& weights,
                                     const std::vector<TokenId>& tokens) {
  Reference reference(config, weights);
  std::vector<double> all;
  for (const TokenId token : tokens) {
    const Row row = reference.next(token);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace weft::llm
