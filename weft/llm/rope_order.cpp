#include "weft/llm/rope_order.h"

#include "weft/llm/families.h"

namespace weft::llm {

namespace {

/// x with each head's (a, b) as (b, a).
Tensor swapped(const Tensor& x, int64_t heads, int64_t a, int64_t b) {
  const int64_t outputs = x.size(0), inputs = x.numel() / std::max<int64_t>(outputs, 1);
  return x.reshape({heads, a, b, inputs}).transpose(1, 2).reshape(x.dims());
}

}  // namespace

bool has_pair_order(std::string_view family) {
  for (const Family& f : families())
    if (f.name == family) return f.pairs == Pairs::NeighboursInGguf;
  return false;
}

int64_t heads_of(std::string_view name, const Config& c) {
  if (name.find(".attn_q.") != std::string_view::npos) return c.heads;
  return name.find(".attn_k.") != std::string_view::npos ? c.kv_heads : 0;
}

Tensor in_pair_order(const Tensor& x, int64_t heads) {
  return swapped(x, heads, 2, x.size(0) / heads / 2);
}

Tensor in_half_order(const Tensor& x, int64_t heads) {
  return swapped(x, heads, x.size(0) / heads / 2, 2);
}

}  // namespace weft::llm
