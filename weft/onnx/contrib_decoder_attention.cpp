// com.microsoft: DecoderMaskedMultiHeadAttention, a step of a decoder whose keys and values lie in
// buffers that past and present share (Whisper and T5, exported for ONNX Runtime).
#include "weft/onnx/contrib_attention.h"

namespace weft::onnx {
namespace {

// The inputs.
enum : size_t {
  kQuery,
  kKey,
  kMask = 3,
  kBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kBeams = 9,
  kProjectionBias
};

// Places in the buffers.
struct Buffers {
  Tensor places;  // (positions of the buffer) i64
  Tensor past;    // () i64: how many are in them already
};

// (batch, heads, positions, size) with `fresh` behind what is there.
Tensor with_fresh(const Tensor& buffer, const Tensor& fresh, const Buffers& at) {
  const Tensor places = at.past + Tensor::arange(fresh.dim(2), DType::I64);
  return buffer.scatter(2, places.reshape({1, 1, -1, 1}).expand(fresh.dims()), fresh);
}

// What each beam reads: the keys of the beams that it comes from. origins: (batch, beams,
// positions), while those of a batch follow each other in x.
Tensor of_beams(const Tensor& x, const Tensor& origins, const Buffers& at) {
  const Tensor own = Tensor::arange(x.dim(0), DType::I64).unsqueeze(1);
  const Tensor first = own - own % origins.size(1);
  const Tensor origin = first + origins.cast(DType::I64).flatten(0, 1);
  const Tensor from = (at.places < at.past).unsqueeze(0).where(origin, own);
  return x.gather(0, from.unsqueeze(1).unsqueeze(-1).expand(x.dims()));
}

// Adds the past to keys and values; the results are the keys and values of the next step.
Values extended(const NodeCall& call, Heads& x, Seen& seen) {
  if (!call.has(kPastKey) || !call.has(kPastValue)) return {x.k, x.v};
  const Tensor &past_key = call.tensor(kPastKey), &past_value = call.tensor(kPastValue);
  if (call.integer("past_present_share_buffer", 0) == 0) {
    x.k = Tensor::cat({past_key, x.k}, 2), x.v = Tensor::cat({past_value, x.v}, 2);
    return {x.k, x.v};
  }
  const Dims beams = call.has(kBeams) ? call.tensor(kBeams).dims() : Dims{1, 1, 1};
  if (past_key.ndim() != 4 || past_value.ndim() != 4 || beams.size() != 3 || beams[1] == Dim(0))
    call.refuse(
        "past {} and {}, cache_indirection {}: (batch, heads, positions, size) and (batch, "
        "beams, positions)",
        past_key.dims().text(), past_value.dims().text(), beams.text());
  const Buffers at{Tensor::arange(past_key.dim(2), DType::I64),
                   call.tensor(kPastLength).cast(DType::I64).reshape({})};
  x.k = with_fresh(past_key, x.k, at), x.v = with_fresh(past_value, x.v, at);
  const Values present = {x.k, x.v};
  seen.visible = (at.places <= at.past).reshape({1, 1, 1, -1});
  if (call.has(kBeams)) {
    x.k = of_beams(x.k, call.tensor(kBeams), at);
    x.v = of_beams(x.v, call.tensor(kBeams), at);
  }
  return present;
}

// What the mask (batch, total) hides; places of the buffers behind it are not visible anyway.
Tensor masked(const Tensor& mask, const Dim& keys) {
  const Tensor hidden = mask == 0;
  const Tensor all = hidden.dim(1) == keys ? hidden : hidden.pad({{0, 0}, {0, keys - mask.dim(1)}});
  return all.unsqueeze(1).unsqueeze(1);
}

}  // namespace

Values decoder_masked_attention(const NodeCall& call) {
  Heads x = heads_of(call);
  if (!(x.q.dim(2) == Dim(1)))
    call.refuse("query {}: one position at a time", call.tensor(kQuery).dims().text());
  add_bias(call, kProjectionBias, x);
  Seen seen;
  seen.filter = call.number("mask_filter_value", -10000);
  const bool cross = call.tensor(kKey).ndim() == 4;
  Values results = cross ? Values{x.k, x.v} : extended(call, x, seen);
  if (call.has(kMask)) seen.hidden = masked(call.tensor(kMask), x.k.dim(2));
  if (call.has(kBias)) seen.bias = call.tensor(kBias);
  const Attended made = attended(x, seen, {call.number("scale", 0), 0, {}}, call.wants(3));
  results.insert(results.begin(), Value(made.output));
  if (call.wants(3)) results.emplace_back(made.weights);
  return results;
}

}  // namespace weft::onnx
