// Weights: a model's tensors by the names that GGUF files have, packed as they lie in the file.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/io/gguf_model.h"
#include "weft/io/safetensors.h"
#include "weft/io/tensors.h"

namespace weft::llm {

/// Factors (rank, in) and (out, rank): x a^T b^T scale is added to what a weight gives (Lora).
struct LowRank {
  Tensor a, b;
  double scale = 1;
};

/// Of how many rows and columns each number that scales a part of a matrix is; 0: of an equal part.
struct ScaleBlock {
  int64_t rows = 0, columns = 0;
};

struct Weight {
  Tensor stored;             ///< as it lies in the file, or a view of that; matrices are (out, in)
  Codec codec = Codec::F32;  ///< of packed ones; their bytes are `stored`
  Dims shape;
  std::string type;                   ///< as the file has it: Q4_K, bf16, ...
  int64_t bytes = 0;                  ///< in the file
  std::vector<LowRank> factors = {};  ///< of adapters; value() is without them
  bool interleaved = false;  ///< stored is (groups of rows, words, rows, bytes), a group's rows
                             ///< side by side
  /// Of floats of 8 bits, as folders have them: (.., blocks of rows, of columns).
  Tensor scales = {};
  ScaleBlock scaled = {};  ///< a block's size

  bool defined() const { return stored.defined(); }
  /// In f32: an expression, so that a step which uses it decodes as it goes.
  Tensor value() const;
  Tensor computed() const;  ///< the same in memory: of short ones
  /// value() of one of the matrices that are stacked here, `id` (1) i32, for many rows: packed ones
  /// are read where they lie, of plain ones its own numbers are copied.
  Tensor chosen(const Tensor& id) const;
  /// value() of several of them, `ids` (n) i32, read where they lie: (n, out, in).
  Tensor each(const Tensor& ids) const;
};

/// What a tensor of a Hugging Face model is in a GGUF file.
struct TranslatedName {
  std::string name;         ///< empty: no weight of a language model
  bool transposed = false;  ///< lies as (..., in, out)
  bool pairs = false;       ///< outputs are those of ffn_gate_exps and ffn_up_exps in turns
  int64_t expert = -1;      ///< one of those that `name` stacks; -1: all, or no experts
};
/// "model.layers.0.self_attn.q_proj.weight" is "blk.0.attn_q.weight". `sandwiched`: the layers have
/// norms after their parts. `family`: whose name it is, where families mean different things by it.
TranslatedName translated(std::string_view name, bool sandwiched, std::string_view family = {});
/// The other way: the name in a model of this family; empty: it has none. Of experts that lie apart
/// in one ("mlp.experts.*.up_proj"), with a * for the number.
std::string hugging_face_name(std::string_view name, std::string_view family);

class Weights {
 public:
  explicit Weights(const GgufModel& model);
  /// Names of Hugging Face's models are translated. `norm_offset` is added to the weights of norms.
  /// Experts that lie apart are copied into one array, and those in MXFP4 into ggml's blocks, now
  /// or, `lazily`, when that is computed. Matrices of 8-bit floats ("..weight") stay as they lie,
  /// beside their scales ("..weight_scale_inv" or "..weight_scale") of `block`. Errors:
  /// "llm.weights" where experts of one layer are not all there, or codes and scales do not fit
  /// each other.
  explicit Weights(const SafetensorsContent& content, double norm_offset = 0, bool lazily = false,
                   ScaleBlock block = {}, std::string_view family = {});
  /// Plain tensors by GGUF's names, which stay the same tensors: those that are trained.
  explicit Weights(const std::vector<NamedTensor>& tensors);

  const Weight* find(std::string_view name) const;  ///< null: none
  const std::map<std::string, Weight, std::less<>>& all() const { return weights_; }
  int64_t bytes() const;
  void add_factors(std::string_view name, const LowRank& factors);  ///< of a weight that there is
  /// Copies packed matrices so that so many rows of each lie side by side (by interleaved_rows(),
  /// few rows are multiplied faster; 0: left as they lie), at most `most` of them. What a file has
  /// of each leaves memory once it is copied. Whether there is nothing left to copy.
  bool interleave_rows(FunctionRef<int64_t(Codec)> rows_of,
                       int64_t most = std::numeric_limits<int64_t>::max());

 private:
  using Stacks = std::map<std::string, std::map<int64_t, Weight>>;  // experts by number
  void add(const NamedArray& array, const TranslatedName& to, double norm_offset,
           const HostArray* scales, ScaleBlock block, Stacks& stacks);
  void add_pairs(const TranslatedName& to, const Weight& both);
  void add_mxfp4(const SafetensorsContent& content, bool lazily);
  std::map<std::string, Weight, std::less<>> weights_;
};

}  // namespace weft::llm
