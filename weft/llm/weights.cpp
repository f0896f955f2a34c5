#include "weft/llm/weights.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/dtype/codec.h"
#include "weft/io/host_memory.h"
#include "weft/tensor/packed.h"

namespace weft::llm {

namespace {

Tensor in_file(const HostArray& array) {
  if (array.bytes.empty()) return Tensor::empty(Dims(array.shape), array.dtype);
  return borrowed_tensor(array.bytes.data(), array.dtype, array.shape, array.owner);
}

bool is_norm(std::string_view name) { return name.ends_with("norm.weight"); }

Weight weight_of(const Tensor& stored, int64_t bytes) {
  return {stored, Codec::F32, stored.dims(), std::string(weft::name(stored.dtype())), bytes};
}

constexpr std::string_view kBlocks = "_blocks", kScales = "_scales";

/// Of codes in blocks (.., rows, blocks, 16) and scales (.., rows, blocks) the bytes of ggml's
/// blocks, (.., rows, blocks, 17). Two codes that follow each other share a byte there (the first
/// in its low half; transformers/integrations/mxfp4.py), two that are 16 apart here.
Tensor ggml_blocks(const Tensor& codes, const Tensor& scales) {
  const int64_t half = codes.size(-1);
  const Tensor each = Tensor::stack({codes & 15, codes >> 4}, -1).flatten(-2, -1);
  const auto part = [&](int64_t begin) {
    return each.index({kEllipsis, Slice(begin, begin + half)});
  };
  return Tensor::cat({scales.unsqueeze(-1), part(0) | (part(half) << 4)}, -1).cast(DType::U8);
}

/// (experts, rows, columns) in MXFP4, of every `step`-th row from `first` on.
Weight mxfp4_rows(const Tensor& blocks, int64_t first, int64_t step, bool lazily) {
  const Tensor rows = blocks.index({Slice(), Slice(first, std::nullopt, step)});
  Weight w = weight_of(lazily ? rows.contiguous() : rows.contiguous().realize(), rows.numel());
  w.codec = Codec::MXFP4;
  w.type = name(w.codec);
  w.shape = {rows.size(0), rows.size(1), rows.size(2) * row(w.codec).elements};
  return w;
}

/// Of what the gate multiplies.
std::string other_of_pair(std::string gate) {
  return gate.replace(gate.find("ffn_gate_exps"), 13, "ffn_up_exps");
}

constexpr std::string_view kScaleEnds[] = {"_scale_inv", "_scale"};

/// What scales this array's numbers; null: nothing.
const HostArray* scales_of(const SafetensorsContent& content, const std::string& name) {
  for (const std::string_view end : kScaleEnds)
    if (const HostArray* found = content.find(name + std::string(end))) return found;
  return nullptr;
}

/// Packed numbers whose scales would be passed over.
void refuse_other_scales(const SafetensorsContent& content) {
  for (const NamedArray& array : content.arrays)
    for (const std::string_view end : kScaleEnds) {
      if (!array.name.ends_with(end)) continue;
      const std::string matrix = array.name.substr(0, array.name.size() - end.size());
      if (translated(matrix, false).name.empty()) continue;
      const HostArray* scaled = content.find(matrix);
      if (scaled == nullptr || !is_float(scaled->dtype) || bits(scaled->dtype) != 8)
        fail("llm.weights",
             "{} scales a packed matrix, and weft reads none but floats of 8 bits and mxfp4: take "
             "the model that is not packed, or a GGUF file",
             quoted_name(array.name));
    }
}

/// The matrix with its scales: one for all, one for a row, or one for each block.
void scale(Weight& w, const std::string& name, const HostArray& scales, ScaleBlock block) {
  std::vector<int64_t> grid = scales.shape;
  while (grid.size() < 2) grid.push_back(1);
  const auto blocks = [](int64_t size, int64_t count, int64_t wanted) {
    if (count == 1) return size;
    if (wanted > 0 && (size + wanted - 1) / wanted == count) return wanted;
    return count > 0 && size % count == 0 ? size / count : 0;
  };
  const bool matrix = w.shape.size() == 2 && grid.size() == 2 && is_float(scales.dtype);
  if (matrix)
    w.scaled = {blocks(w.shape[0].value(), grid[0], block.rows),
                blocks(w.shape[1].value(), grid[1], block.columns)};
  if (!matrix || w.scaled.rows == 0 || w.scaled.columns == 0)
    fail("llm.weights",
         "{} is {}, and its scales are {}: there is one for all, for each row, or for "
         "each block",
         quoted_name(name), w.shape.text(), Dims(scales.shape).text());
  w.scales = in_file(scales).cast(DType::F32).reshape(Dims(grid)).contiguous().realize();
  w.bytes += static_cast<int64_t>(scales.bytes.size());
}

/// One number for each of a matrix (.., rows, columns).
Tensor spread(const Tensor& scales, ScaleBlock block, const Dims& shape) {
  const Tensor each = scales.unsqueeze(-1).unsqueeze(-3);  // (.., rows, 1, columns, 1)
  Dims wide = each.dims();
  wide[wide.size() - 3] = block.rows, wide[wide.size() - 1] = block.columns;
  const Dim rows = shape[shape.size() - 2], columns = shape[shape.size() - 1];
  return each.expand(wide).flatten(-2, -1).flatten(-3, -2).index(
      {kEllipsis, Slice(0, rows), Slice(0, columns)});
}

/// Experts that lie apart, as one array.
Weight stacked(const std::string& name, const std::map<int64_t, Weight>& parts, bool lazily) {
  std::vector<Tensor> all, scales;
  int64_t bytes = 0;
  for (const auto& [expert, part] : parts) {
    if (expert != static_cast<int64_t>(all.size()) || !(part.shape == parts.begin()->second.shape))
      fail("llm.weights", "{}: expert {} is missing or has another shape", name, all.size());
    if (part.scales.defined() != parts.begin()->second.scales.defined())
      fail("llm.weights", "{}: expert {} has scales, or the others have", name, expert);
    all.push_back(part.stored);
    if (part.scales.defined()) scales.push_back(part.scales);
    bytes += part.bytes;
  }
  const Tensor one = Tensor::stack(all);
  Weight made = weight_of(lazily ? one : one.realize(), bytes);
  made.scaled = parts.begin()->second.scaled;
  if (!scales.empty()) made.scales = Tensor::stack(scales).realize();
  return made;
}

/// The bytes of some of what `w` stacks, where they lie. Bounds say that ids are inside: loads that
/// would be tested one by one are vectors.
Tensor bytes_of(const Weight& w, const Tensor& ids) {
  return w.stored.reshape({w.shape[0], -1}).index({ids.clamp(0, w.shape[0].value() - 1)});
}

}  // namespace

Tensor Weight::value() const {
  if (interleaved) return decode_interleaved(stored, codec, shape);
  if (!is_plain(codec)) return decode(stored, codec, shape);
  if (scales.defined()) return stored.cast(DType::F32) * spread(scales, scaled, shape);
  return stored.dtype() == DType::F32 ? stored : stored.cast(DType::F32);
}

Tensor Weight::chosen(const Tensor& id) const {
  const Dims one = {shape[1], shape[2]};
  if (!is_plain(codec)) return decode(bytes_of(*this, id), codec, one);
  const Tensor own = stored.index({id}).contiguous().reshape(one).cast(DType::F32);
  if (!scales.defined()) return own;
  return own * spread(scales.index({id}).reshape({scales.dim(-2), scales.dim(-1)}), scaled, one);
}

Tensor Weight::each(const Tensor& ids) const {
  if (is_plain(codec)) return value().index({ids.clamp(0, shape[0].value() - 1)});
  return decode(bytes_of(*this, ids), codec, {ids.size(0), shape[1], shape[2]});
}

Tensor Weight::computed() const { return value().realize(); }

Weights::Weights(const GgufModel& model) {
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const PackedTensor& t = model.tensors[i];
    weights_.emplace(t.name, Weight{t.packed, t.codec, t.shape, std::string(name(t.codec)),
                                    static_cast<int64_t>(model.content.tensors[i].bytes.size())});
  }
}

Weights::Weights(const SafetensorsContent& content, double norm_offset, bool lazily,
                 ScaleBlock block, std::string_view family) {
  refuse_other_scales(content);
  const bool sandwiched = std::ranges::any_of(content.arrays, [](const NamedArray& a) {
    return a.name.find("post_feedforward_layernorm") != std::string::npos;
  });
  Stacks stacks;
  for (const NamedArray& array : content.arrays) {
    const TranslatedName to = translated(array.name, sandwiched, family);
    if (!to.name.empty() && is_float(array.array.dtype))
      add(array, to, norm_offset, scales_of(content, array.name), block, stacks);
  }
  add_mxfp4(content, lazily);
  for (const auto& [name, parts] : stacks)
    weights_.insert_or_assign(name, stacked(name, parts, lazily));
}

Weights::Weights(const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& t : tensors)
    weights_.emplace(t.name, weight_of(t.tensor, bytes_for(t.tensor.dtype(), t.tensor.numel())));
}

void Weights::add(const NamedArray& array, const TranslatedName& to, double norm_offset,
                  const HostArray* scales, ScaleBlock block, Stacks& stacks) {
  Tensor stored = in_file(array.array);
  if (to.transposed && stored.ndim() >= 2) stored = stored.T();
  if (norm_offset != 0 && is_norm(to.name))
    stored = (stored.cast(DType::F32) + norm_offset).realize();
  Weight w = weight_of(stored, static_cast<int64_t>(array.array.bytes.size()));
  if (scales != nullptr && to.transposed)
    fail("llm.weights", "{} has scales, which are not supported in this family",
         quoted_name(array.name));
  if (scales != nullptr) scale(w, array.name, *scales, block);
  if (to.pairs) return add_pairs(to, w);
  if (to.expert >= 0)
    stacks[to.name][to.expert] = std::move(w);
  else
    weights_.insert_or_assign(to.name, std::move(w));
}

/// (experts, 2 outputs, ...), those of the gate and of what it gates in turns.
void Weights::add_pairs(const TranslatedName& to, const Weight& both) {
  if (both.stored.ndim() < 2) return;
  for (const int64_t side : {0, 1}) {
    const std::string own = side == 0 ? to.name : other_of_pair(to.name);
    const Tensor part = both.stored.index({Slice(), Slice(side, std::nullopt, 2)});
    weights_.insert_or_assign(own, weight_of(part, both.bytes / 2));
  }
}

/// What gpt-oss's folders call "..experts.down_proj_blocks" and "..experts.down_proj_scales".
void Weights::add_mxfp4(const SafetensorsContent& content, bool lazily) {
  for (const NamedArray& codes : content.arrays) {
    if (!codes.name.ends_with(kBlocks)) continue;
    const std::string matrix = codes.name.substr(0, codes.name.size() - kBlocks.size());
    const TranslatedName to = translated(matrix, false);
    if (to.name.empty()) continue;
    const HostArray* scales = content.find(matrix + std::string(kScales));
    std::vector<int64_t> wanted = codes.array.shape;
    const bool fits = wanted.size() == 4 && wanted[3] == row(Codec::MXFP4).elements / 2;
    if (fits) wanted.pop_back();
    if (!fits || scales == nullptr || scales->shape != wanted || scales->dtype != DType::U8 ||
        codes.array.dtype != DType::U8)
      fail("llm.weights",
           "'{}' is no MXFP4: codes are u8 (experts, rows, blocks, 16), with scales "
           "'{}', u8 (experts, rows, blocks)",
           codes.name, matrix + std::string(kScales));
    const Tensor blocks = ggml_blocks(in_file(codes.array), in_file(*scales));
    weights_.insert_or_assign(to.name, mxfp4_rows(blocks, 0, to.pairs ? 2 : 1, lazily));
    if (to.pairs)
      weights_.insert_or_assign(other_of_pair(to.name), mxfp4_rows(blocks, 1, 2, lazily));
  }
}

const Weight* Weights::find(std::string_view name) const {
  const auto at = weights_.find(name);
  return at == weights_.end() ? nullptr : &at->second;
}

void Weights::add_factors(std::string_view name, const LowRank& factors) {
  const auto at = weights_.find(name);
  WEFT_CHECK(at != weights_.end(), "factors of no weight");
  at->second.factors.push_back(factors);
}

int64_t Weights::bytes() const {
  int64_t all = 0;
  for (const auto& [name, w] : weights_) all += w.bytes;
  return all;
}

}  // namespace weft::llm
