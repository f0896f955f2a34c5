// com.microsoft: GroupQueryAttention, with its cache of keys and values.
#include "weft/onnx/contrib_attention.h"
#include "weft/onnx/host.h"

namespace weft::onnx {
namespace {

// Where each sequence of the batch is: its new positions, of all in the cache.
struct Places {
  Tensor begins;     // (batch) i64: how many are in the cache already
  Tensor positions;  // (batch or 1, queries) i64
  Dim total;         // that the cache holds afterwards
  bool together;     // all sequences are equally long, and the cache is full: new ones come behind
};

Places places_of(const NodeCall& call, const Tensor& q, const Dim& past) {
  const Dim length = q.dim(2);
  const std::vector<int64_t> most = call.ints(6);
  if (most.size() != 1 || most[0] < 1)
    call.refuse("total_sequence_length has {} elements: one, of at least 1", most.size());
  Places places;
  places.total = max(Dim(most[0]), past);
  places.together = q.dim(0) == Dim(1) && past + length == Dim(most[0]);
  const Tensor here = Tensor::arange(length, DType::I64).unsqueeze(0);
  if (places.together || Dim(most[0]) == length) {  // nothing is in the cache, or all are equal
    const Tensor all = Tensor::arange(places.total, DType::I64);
    const Dim begin = places.together ? past : Dim(0);
    places.positions = all.index({Slice(begin, begin + length)}).unsqueeze(0);
    places.begins = places.positions.index({Slice(), 0}).expand({q.dim(0)});
    return places;
  }
  const Tensor last = call.tensor(5).cast(DType::I64).reshape({-1});
  const Tensor count = Tensor::arange(length + Dim(1), DType::I64).max();
  places.begins = last + 1 - count;
  places.positions = places.begins.unsqueeze(1) + here;
  return places;
}

// The cache with `fresh` at the places of its sequence.
Tensor updated(const Tensor& cache, const Tensor& fresh, const Places& places) {
  if (places.together) return cache.defined() ? Tensor::cat({cache, fresh}, 2) : fresh;
  const Dims shape = {fresh.dim(0), fresh.dim(1), places.total, fresh.dim(3)};
  if (!cache.defined() && fresh.dim(2) == places.total) return fresh;
  Tensor all = Tensor::zeros(shape, fresh.dtype());
  if (cache.defined() && cache.dim(2) == places.total) all = cache;
  if (cache.defined() && !(cache.dim(2) == places.total))
    all = cache.pad({{0, 0}, {0, 0}, {0, places.total - cache.dim(2)}, {0, 0}});
  const Tensor at = places.positions.unsqueeze(1).unsqueeze(-1).expand(fresh.dims());
  return all.scatter(2, at, fresh);
}

// (batch or 1, 1, queries, keys): what causality and the window show.
Tensor visible(const Places& places, int64_t window, bool causal) {
  const Tensor at = Tensor::arange(places.total, DType::I64).reshape({1, 1, 1, places.total});
  const Tensor query = places.positions.unsqueeze(1).unsqueeze(-1);
  const Tensor last = places.begins.reshape({-1, 1, 1, 1}) +
                      Tensor::arange(places.positions.dim(1), DType::I64).max();
  Tensor seen = causal ? at <= query : at <= last;
  if (window > 0) seen = seen & (at > query - window);
  return seen;
}

Heads split(const NodeCall& call) {
  const int64_t heads = call.integer("num_heads"), groups = call.integer("kv_num_heads");
  if (heads < 1 || groups < 1 || heads % groups != 0)
    call.refuse("num_heads {} and kv_num_heads {}: the one is a multiple of the other", heads,
                groups);
  const Tensor& query = call.tensor(0);
  if (call.has(1) && call.has(2))
    return {split_heads(call, query, heads), split_heads(call, call.tensor(1), groups),
            split_heads(call, call.tensor(2), groups)};
  if (query.ndim() != 3 || query.size(2) % (heads + 2 * groups) != 0)
    call.refuse("a packed query {} for {} and twice {} heads", query.dims().text(), heads, groups);
  const int64_t size = query.size(2) / (heads + 2 * groups);
  const auto parts =
      query.split(std::vector<int64_t>{heads * size, groups * size, groups * size}, -1);
  return {split_heads(call, parts[0], heads), split_heads(call, parts[1], groups),
          split_heads(call, parts[2], groups)};
}

void require_supported(const NodeCall& call) {
  for (const size_t i : {size_t{12}, size_t{13}})
    if (call.has(i)) call.refuse("a quantised cache of keys and values is not supported");
  if (call.has(16)) call.refuse("query_seqlens is not supported: sequences of one length are");
  if (call.integer("sliding_window_cache", 0) != 0 || call.wants(3))
    call.refuse("sliding_window_cache and output_qk are not supported");
}

void norm_heads(const NodeCall& call, Heads& x) {
  if (!call.has(14) || !call.has(15)) return;
  const double epsilon = call.number("qk_norm_epsilon", 1e-6);
  x.q = normed(x.q, call.tensor(14), {}, call.number("q_norm_epsilon", epsilon), false);
  x.k = normed(x.k, call.tensor(15), {}, call.number("k_norm_epsilon", epsilon), false);
}

void rotate(const NodeCall& call, Heads& x, const Places& places) {
  if (call.integer("do_rotary", 0) == 0) return;
  const Tensor at = call.has(9) ? call.tensor(9) : places.positions;
  const Tensor cosine = call.tensor(7).index({at}), sine = call.tensor(8).index({at});
  const bool interleaved = call.integer("rotary_interleaved", 0) != 0;
  x.q = rotated(x.q, cosine, sine, interleaved);
  x.k = rotated(x.k, cosine, sine, interleaved);
}

}  // namespace

Values group_query_attention(const NodeCall& call) {
  require_supported(call);
  Heads x = split(call);
  const Tensor past_key = optional_tensor(call, 3), past_value = optional_tensor(call, 4);
  const Places places = places_of(call, x.q, past_key.defined() ? past_key.dim(2) : Dim(0));
  norm_heads(call, x);
  rotate(call, x, places);
  const Tensor keys = updated(past_key, x.k, places), values = updated(past_value, x.v, places);
  const int64_t window = call.integer("local_window_size", -1);
  const bool causal = call.integer("causal", 1) != 0;
  Seen seen;
  if (call.has(10)) seen.bias = call.tensor(10);
  const bool behind = places.together || places.total == x.q.dim(2);  // nothing is hidden but later
  if (behind && window <= 0)
    seen.causal = causal;
  else
    seen.visible = visible(places, window, causal);
  Scores scores{call.number("scale", 0), call.number("softcap", 0), {}};
  if (call.has(11))
    scores.sink = call.tensor(11);
  else if (call.integer("smooth_softmax", -1) > 0)
    scores.sink = Tensor::zeros({x.q.dim(1)}, x.q.dtype());
  return {attended({x.q, keys, values}, seen, scores).output, keys, values};
}

}  // namespace weft::onnx
