// What two models' descriptions differ in.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "weft/base/format.h"
#include "weft/llm/config_write.h"
#include "weft/llm/rope.h"

namespace weft::llm {

namespace {

// GGUF files have f32, whose last bit is 6e-8 of a number; what is computed of them has a few.
constexpr double kNear = 1e-6;

bool near(double a, double b) {
  return std::abs(a - b) <= kNear * std::max(std::abs(a), std::abs(b));
}

class Differences {
 public:
  template <class T>
  void of(const char* name, const T& a, const T& b) {
    const bool same = [&] {
      if constexpr (std::is_floating_point_v<T>) return near(a, b);
      return a == b;
    }();
    if (!same) text_ += strformat("\n  {}: {} and {}", name, a, b);
  }
  void note(const char* what) { text_ += strformat("\n  {}", what); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void sizes(const Config& a, const Config& b, Differences& d) {
  d.of("layers", a.layers, b.layers);
  d.of("width", a.dim, b.dim);
  d.of("heads", a.heads, b.heads);
  d.of("heads of keys", a.kv_heads, b.kv_heads);
  d.of("size of a head", a.head_dim, b.head_dim);
  d.of("size of a head's value", a.value_dim, b.value_dim);
  d.of("width of the feed-forward part", a.ffn, b.ffn);
  d.of("vocabulary", a.vocabulary, b.vocabulary);
  d.of("context", a.context, b.context);
  d.of("epsilon of norms", a.norm_epsilon, b.norm_epsilon);
  d.of("cap of scores", a.attention_cap, b.attention_cap);
  d.of("cap of logits", a.logit_cap, b.logit_cap);
  d.of("scale of scores", a.scale_of_scores(), b.scale_of_scores());
  d.of("scores are divided by their layer's number", a.scale_by_layer, b.scale_by_layer);
  d.of("bound of queries, keys and values", a.clip, b.clip);
  d.of("scale of embeddings", a.embedding_scale, b.embedding_scale);
  d.of("scale of what a part adds", a.residual_scale, b.residual_scale);
  d.of("divisor of logits", a.logit_divisor, b.logit_divisor);
  d.of("rank of keys", a.latent.kv_rank, b.latent.kv_rank);
  d.of("rank of queries", a.latent.q_rank, b.latent.q_rank);
  if (a.activation != b.activation) d.note("activation of feed-forward parts");
}

void experts(const Experts& a, const Experts& b, Differences& d) {
  d.of("experts", a.count, b.count);
  if (a.count == 0 || b.count == 0) return;
  d.of("experts used", a.used, b.used);
  d.of("width of an expert", a.ffn, b.ffn);
  d.of("width of shared experts", a.shared_ffn, b.shared_ffn);
  d.of("experts' shares add up to 1", a.normalised, b.normalised);
  d.of("scale of experts' shares", a.scale, b.scale);
  d.of("groups of experts", a.groups, b.groups);
  d.of("groups used", a.used_groups, b.used_groups);
  d.of("experts that a group is measured by", a.group_best, b.group_best);
  if (a.gate != b.gate) d.note("how experts are chosen");
  d.of("jitter of the experts' scores", a.jitter, b.jitter);
}

bool all_near(const std::vector<float>& a, const std::vector<float>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = near(static_cast<double>(a[i]), static_cast<double>(b[i]));
  return same;
}

void rope(const char* which, const Rope& a, const Rope& b, int64_t context, Differences& d) {
  d.of(which, a.size, b.size);
  if (a.size != b.size || a.size == 0) return;
  if (a.scaling == Rope::Scaling::LongRope || a.scaling == Rope::Scaling::Dynamic)
    d.of("context of training", a.trained_context, b.trained_context);
  for (const int64_t length : {int64_t{0}, context})
    if (!all_near(rope_frequencies(a, length), rope_frequencies(b, length)))
      d.note("rotary frequencies");
  d.of("scale of rotary positions", rope_attention_factor(a), rope_attention_factor(b));
}

}  // namespace

std::string differences(const Config& a, const Config& b) {
  Differences d;
  sizes(a, b, d);
  experts(a.experts, b.experts, d);
  rope("numbers that are turned", a.rope, b.rope, a.context, d);
  rope("numbers that are turned in local layers", a.local_rope, b.local_rope, a.context, d);
  if (a.latent.kv_rank > 0 && a.rope.neighbours != b.rope.neighbours)
    d.note("which numbers are turned together");
  d.of("window", a.window, b.window);
  const auto note_layers = [&](const char* what, bool (Config::*has)(int64_t) const) {
    for (int64_t i = 0; i < std::min(a.layers, b.layers); ++i)
      if ((a.*has)(i) != (b.*has)(i)) return d.note(what);
  };
  note_layers("which layers see a window", &Config::is_local);
  note_layers("which layers have positions", &Config::is_placed);
  note_layers("which layers have experts", &Config::has_experts);
  return d.take();
}

}  // namespace weft::llm
