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

/// Experts that lie apart, as one array.
Weight stacked(const std::string& name, const std::map<int64_t, Weight>& parts, bool lazily) {
  std::vector<Tensor> all;
  int64_t bytes = 0;
  for (const auto& [expert, part] : parts) {
    if (expert != static_cast<int64_t>(all.size()) || !(part.shape == parts.begin()->second.shape))
      fail("llm.weights", "{}: expert {} is missing or has another shape", name, all.size());
    all.push_back(part.stored);
    bytes += part.bytes;
  }
  const Tensor one = Tensor::stack(all);
  return weight_of(lazily ? one : one.realize(), bytes);
}

}  // namespace

Tensor Weight::value() const {
  if (!is_plain(codec)) return decode(stored, codec, shape);
  return stored.dtype() == DType::F32 ? stored : stored.cast(DType::F32);
}

Tensor Weight::chosen(const Tensor& id) const {
  const Dims one = {shape[1], shape[2]};
  if (!is_plain(codec))
    return decode(stored.reshape({shape[0], -1}).index({id}).contiguous(), codec, one);
  return stored.index({id}).contiguous().reshape(one).cast(DType::F32);
}

Tensor Weight::computed() const { return value().realize(); }

Weights::Weights(const GgufModel& model) {
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const PackedTensor& t = model.tensors[i];
    weights_.emplace(t.name, Weight{t.packed, t.codec, t.shape, std::string(name(t.codec)),
                                    static_cast<int64_t>(model.content.tensors[i].bytes.size())});
  }
}

Weights::Weights(const SafetensorsContent& content, double norm_offset, bool lazily) {
  const bool sandwiched = std::ranges::any_of(content.arrays, [](const NamedArray& a) {
    return a.name.find("pre_feedforward_layernorm") != std::string::npos;
  });
  Stacks stacks;
  for (const NamedArray& array : content.arrays) {
    const TranslatedName to = translated(array.name, sandwiched);
    if (!to.name.empty() && is_float(array.array.dtype)) add(array, to, norm_offset, stacks);
  }
  for (const auto& [name, parts] : stacks)
    weights_.insert_or_assign(name, stacked(name, parts, lazily));
}

Weights::Weights(const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& t : tensors)
    weights_.emplace(t.name, weight_of(t.tensor, bytes_for(t.tensor.dtype(), t.tensor.numel())));
}

void Weights::add(const NamedArray& array, const TranslatedName& to, double norm_offset,
                  Stacks& stacks) {
  Tensor stored = in_file(array.array);
  if (to.transposed && stored.ndim() >= 2) stored = stored.T();
  if (norm_offset != 0 && is_norm(to.name))
    stored = (stored.cast(DType::F32) + norm_offset).realize();
  Weight w = weight_of(stored, static_cast<int64_t>(array.array.bytes.size()));
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
    std::string own = to.name;
    if (side == 1) own.replace(own.find("ffn_gate_exps"), 13, "ffn_up_exps");
    const Tensor part = both.stored.index({Slice(), Slice(side, std::nullopt, 2)});
    weights_.insert_or_assign(own, weight_of(part, both.bytes / 2));
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
