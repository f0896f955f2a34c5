// Config: what a language model is, as data: sizes, positions, norms, experts. Read from GGUF
// metadata or a Hugging Face config.json; the same for all families.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/io/gguf.h"

namespace weft::llm {

enum class Norm : uint8_t { Rms, Layer };
/// Relu2: the square of relu. GptOss: gated, clamped at a limit, with the sigmoid of 1.702 gate and
/// up plus 1.
enum class Activation : uint8_t { Silu, GeluTanh, Gelu, Relu, Relu2, GptOss };

/// A frequency with this divisor does not turn in any context (llama.cpp's number).
constexpr double kStill = 1e30;
constexpr bool is_still(double divisor) { return divisor > 1e20; }

/// Rotary positions (Su et al. 2021) and how they reach beyond the context that a model was trained
/// with.
struct Rope {
  enum class Scaling : uint8_t { None, Linear, Dynamic, Llama3, Yarn, LongRope, Proportional };
  int64_t size = 0;  ///< of a head's numbers, so many are turned; 0: no rotary positions
  double base = 10000;
  bool neighbours = false;  ///< pairs of neighbours are turned; else of the two halves
  Scaling scaling = Scaling::None;
  double factor = 1;
  int64_t trained_context = 0;                   ///< before scaling
  double low_frequency = 1, high_frequency = 4;  ///< llama 3's
  double fast = 32, slow = 1;                    ///< YaRN's beta (Peng et al. 2023)
  bool whole_bounds = true;                      ///< YaRN's ramp begins and ends at whole numbers
  double attention_factor = 0;                   ///< of cosines and sines; 0: as the scaling has it
  double scale_log = 0, scale_log_all = 0;       ///< YaRN: mscale and mscale_all_dim
  /// Of frequencies: LongRope's short ones, GGUF's rope_freqs, Proportional's.
  std::vector<double> divisors;
  std::vector<double> long_divisors;  ///< LongRope's beyond trained_context
};

/// Of which tokens' hidden states a text's embedding is made.
enum class Pooling : uint8_t { Mean, First, Last };

/// Feed-forward parts of which each token takes a few.
struct Experts {
  /// SparseMixer: the best two, each with its share among those that are almost as good.
  enum class Gate : uint8_t { Softmax, Sigmoid, SoftmaxOfChosen, SparseMixer };
  int64_t count = 0, used = 0;  ///< 0: none
  int64_t ffn = 0;              ///< width of one
  int64_t shared_ffn = 0;       ///< of what all tokens take besides; 0: nothing
  std::vector<bool> in_layer;   ///< layers that have them; empty: all
  Gate gate = Gate::Softmax;
  double jitter = 0.01;                 ///< SparseMixer's: twice this is almost as good
  bool normalised = false;              ///< the chosen ones' shares add up to 1
  double scale = 1;                     ///< of the shares
  int64_t groups = 1, used_groups = 1;  ///< chosen from the best groups (DeepSeek)
  int64_t group_best = 1;               ///< a group is as good as the sum of so many of its best
};

/// Multi-head latent attention (DeepSeek-V2): keys and values from a narrow vector.
struct Latent {
  int64_t kv_rank = 0;  ///< 0: ordinary attention
  int64_t q_rank = 0;   ///< 0: queries come from the hidden state itself
  int64_t plain = 0;    ///< of a head's key, the part without positions
};

struct Config {
  std::string family;  ///< a row of families.cpp
  std::string name;
  int64_t layers = 0, dim = 0, heads = 0, kv_heads = 0, head_dim = 0, value_dim = 0;
  int64_t ffn = 0, vocabulary = 0, context = 0;
  bool own_output = false;  ///< the file says that the output is not the table of tokens
  /// An output that is its own may be missing: texts have embeddings then, and none is gone on
  /// with.
  bool embeds = false;
  double norm_epsilon = 1e-5;
  Norm norm = Norm::Rms;
  Activation activation = Activation::Silu;
  bool gated = true;        ///< activation(gate) * up; else activation(up)
  bool pre_norms = true;    ///< norms before attention and feed-forward
  bool post_norms = false;  ///< norms after them
  bool parallel = false;    ///< attention and feed-forward read the same, by one norm
  bool learned_positions = false;
  int64_t first_position = 0;  ///< the row of the first one's
  /// Every token sees all others: texts have embeddings, and none is gone on with. Norms are behind
  /// attention and feed-forward parts, and one behind the tokens' rows (Devlin et al. 2018).
  bool encoder = false;
  int64_t distance_buckets = 0;  ///< scores have a summand by key's distance, of so many (T5's)
  double embedding_scale = 1;
  double residual_scale = 1;  ///< of what each part adds
  double logit_divisor = 1;
  double norm_offset = 0;                   ///< added to the weights of norms as the file has them
  double attention_scale = 0;               ///< of scores; 0: 1 / sqrt(head_dim)
  bool scale_by_layer = false;              ///< the i-th layer's scores are divided by i + 1
  double attention_cap = 0, logit_cap = 0;  ///< cap tanh(x / cap); 0: none
  double clip = 0;                ///< queries, keys and values stay within -clip and clip; 0: any
  bool norm_whole_heads = false;  ///< queries and keys are normalised over all heads at once
  bool norm_each_head = false;    ///< each by weights of its own
  int64_t window = 0;             ///< of local layers
  std::vector<bool> local;        ///< layers that see a window only; empty: none
  std::vector<bool> unplaced;     ///< layers without rotary positions; empty: none
  Rope rope;                      ///< of global layers
  Rope local_rope;                ///< of local layers
  Experts experts;
  Latent latent;
  std::vector<int32_t> end_tokens;
  /// Of a folder's matrices of 8-bit floats; 0: as they have it.
  std::array<int64_t, 2> scale_block = {};
  Pooling pooling = Pooling::Mean;

  bool is_local(int64_t layer) const {
    return window > 0 && !local.empty() && local[static_cast<size_t>(layer)];
  }
  double scale_of_scores() const;
  bool is_placed(int64_t layer) const {
    return unplaced.empty() || !unplaced[static_cast<size_t>(layer)];
  }
  bool has_experts(int64_t layer) const {
    return experts.count > 0 &&
           (experts.in_layer.empty() || experts.in_layer[static_cast<size_t>(layer)]);
  }
};

/// Errors: "llm.family" (unknown), "llm.config" with all that is missing or absurd.
Config read_config(const GgufContent& content);
/// `json` is a config.json.
Config read_config(std::string_view json, std::string_view what = "config.json");

}  // namespace weft::llm
