// Feed-forward parts of which each token takes a few (Shazeer et al. 2017).
#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/llm/network.h"
#include "weft/tensor/transforms.h"

namespace weft::llm {

namespace {

/// Which places of `size` are among the ids along the last axis: (tokens, size) bool.
Tensor is_among(const Tensor& ids, int64_t size) {
  return (ids.unsqueeze(-1) == Tensor::arange(size)).any({1});
}

/// The scores of all but the best groups' experts become -inf (DeepSeek-V2, section 2.1.2, and V3).
Tensor within_best_groups(const Experts& e, const Tensor& scores) {
  const Tensor grouped = scores.reshape({scores.size(0), e.groups, e.count / e.groups});
  const Tensor worth = grouped.topk(e.group_best, -1).first.sum(-1);
  const Tensor open = is_among(worth.topk(e.used_groups, -1).second, e.groups);
  return open.unsqueeze(-1).where(grouped, -INFINITY).reshape(scores.dims());
}

struct Chosen {
  Tensor ids, shares;  // (tokens, used)
};

/// Of the expert with the score `top` (tokens, 1), among those `open` that are almost as good.
Tensor sparse_share(const Tensor& scores, const Tensor& top, const Tensor& open, double jitter) {
  const Tensor worse = (top - scores) / scores.abs().maximum(top) > 2 * jitter;
  return (open & ~worse).where((scores - top).exp(), 0.0F).sum(-1, true).reciprocal();
}

/// Liu et al. 2023 (arXiv 2310.00811) without what is random in training.
Chosen sparsely_mixed(const Experts& e, const Tensor& scores) {
  const auto [best, ids] = scores.topk(2, -1);
  const auto tops = best.chunk(2, -1);
  const Tensor all = Tensor::arange(e.count) >= 0;
  const Tensor others = ids.chunk(2, -1)[0] != Tensor::arange(e.count);
  return {ids, Tensor::cat({sparse_share(scores, tops[0], all, e.jitter),
                            sparse_share(scores, tops[1], others, e.jitter)},
                           -1)};
}

Chosen chosen(const Experts& e, const Tensor& scores, const Tensor& rank_bias) {
  using Gate = Experts::Gate;
  if (e.gate == Gate::SparseMixer) return sparsely_mixed(e, scores);
  Tensor all = scores;
  if (e.gate == Gate::Softmax) all = scores.softmax();
  if (e.gate == Gate::Sigmoid) all = scores.sigmoid();
  Tensor rank = rank_bias.defined() ? all + rank_bias : all;
  if (e.used_groups < e.groups) rank = within_best_groups(e, rank);
  auto [shares, ids] = rank.topk(e.used, -1);
  if (rank_bias.defined()) shares = all.gather(-1, ids);
  if (e.gate == Gate::SoftmaxOfChosen) shares = shares.softmax();
  if (e.normalised) shares = shares / shares.sum(-1, true);
  return {ids, e.scale == 1 ? shares : shares * e.scale};
}

/// x (pairs, 1, in) by the matrices of each pair's expert, `ids` (pairs), only those read: (pairs,
/// 1, out).
Tensor few(const Projection& p, const Tensor& x, const Tensor& ids, Factors factors) {
  const Tensor y = product_with(x, p.weight.each(ids), factors);
  return p.bias.defined() ? y + p.bias.index({ids}).unsqueeze(1) : y;
}

/// x (experts or 1, tokens, in) by every expert: (experts, tokens, out).
Tensor every(const Projection& p, const Tensor& x) {
  const Tensor y = x.matmul(p.weight.value().T());
  return p.bias.defined() ? y + p.bias.unsqueeze(1) : y;
}

/// Pairs of a token and an expert of it, those of one expert together, in blocks of rows that
/// belong to a single expert. How many an expert has is not known before: there are as many blocks
/// as it can take.
struct Grouped {
  Tensor experts;  // (blocks, 1): of each
  Tensor tokens;   // (blocks, rows): of each; of rows that no pair needs, any
  Tensor rows;     // (tokens, used): where each pair lies among all rows
};

Grouped grouped(const Tensor& ids, int64_t experts, int64_t block) {
  const int64_t pairs = ids.size(0) * ids.size(1);
  const int64_t blocks = (pairs + std::min(pairs, experts) * (block - 1)) / block;
  const Tensor of_pair = ids.reshape({pairs, 1});
  const Tensor is = (of_pair == Tensor::arange(experts)).cast(DType::I32);  // (pairs, experts)
  const Tensor needed = (is.sum(0) + (block - 1)).floor_div(block);         // blocks
  const Tensor ends = needed.cumsum(0);
  const Tensor row = (ends - needed) * block + is.cumsum(0) - 1;
  const Tensor rows = (is * row).sum(1).cast(DType::I32);
  const Tensor token = Tensor::arange(pairs).floor_div(ids.size(1)).cast(DType::I32);
  const Tensor here = Tensor::arange(blocks).unsqueeze(-1);
  const Tensor of_block = (ends <= here).cast(DType::I32).sum(1, true).clamp_max(experts - 1);
  return {
      of_block.cast(DType::I32).contiguous(),
      Tensor::zeros({blocks * block}, DType::I32).scatter(0, rows, token).reshape({blocks, block}),
      rows.reshape(ids.dims())};
}

/// Rows of a block: few make little to compute that nobody needs, many decode matrices seldom (256
/// tokens by two of eight matrices 1024 x 4096 of Q4_K: 31, 24, 26 ms with 16, 32, 64 rows).
int64_t block_rows(int64_t pairs, int64_t experts) {
  constexpr int64_t kMost = 32;
  const auto twice_each = static_cast<uint64_t>(std::max<int64_t>(2 * pairs / experts, 1));
  return std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(twice_each)), kMost);
}

/// Up to so many tokens read their own experts, all at once.
constexpr int64_t kFewTokens = 4;
/// So many of one text or more are a part of a prompt, whose factors may be rounded to any width.
constexpr int64_t kPromptTokens = 16;

/// Those of answers are rounded to 8 bits, where each row is by itself, or not at all: nobody's
/// answer depends on who else is there.
Factors of_answers(Factors factors) { return factors == Factors::Q8 ? factors : Factors::F32; }

/// x (rows, in) by the matrix of one expert, `id` (1).
Tensor one_of(const Projection& p, const Tensor& x, const Tensor& id, Factors factors) {
  const Tensor y = product_with(x, p.weight.chosen(id), factors);
  return p.bias.defined() ? y + p.bias.index({id}) : y;
}

bool learns(const Tensor& x, const ExpertWeights& w) {
  return x.requires_grad() || w.gate.weight.stored.requires_grad();
}

}  // namespace

/// Blocks of rows that have the same expert, one after the other.
Tensor Network::by_expert(const Tensor& x, const ExpertWeights& w, const Tensor& ids,
                          bool prompt) const {
  const Experts& e = config_.experts;
  const int64_t pairs = ids.size(0) * ids.size(1);
  const Grouped g = grouped(ids, e.count, block_rows(pairs, e.count));
  const Factors factors = prompt ? w.gate.factors : of_answers(w.gate.factors);
  const auto body = [&](const Tensors&, const Tensors& block) -> ScanResult {
    const Tensor& id = block[0];
    const Tensor rows = x.index({block[1]});
    const Tensor inner =
        activated(one_of(w.gate, rows, id, factors), one_of(w.up, rows, id, factors));
    return {{}, {one_of(w.down, inner, id, factors)}};
  };
  const Tensor all = scan(body, {}, {g.experts, g.tokens}, {.apart = true}).stacked[0];
  return all.reshape({-1, x.size(1)}).index({g.rows});
}

Tensor Network::experts(const Tensor& x, const ExpertWeights& w) const {
  const Experts& e = config_.experts;
  const int64_t tokens = x.size(0) * x.size(1), dim = x.size(2);
  const Tensor flat = x.reshape({tokens, dim});
  const Chosen choice = chosen(e, w.router(flat), w.rank_bias);
  const auto shared_out = [&](const Tensor& each) {
    return (each * choice.shares.unsqueeze(-1)).sum(1);
  };
  Tensor y;
  if (tokens <= kFewTokens) {
    const Tensor ids = choice.ids.flatten(), each = flat.repeat_interleave(e.used, 0).unsqueeze(1);
    const Factors factors = of_answers(w.gate.factors);
    const Tensor inner = activated(few(w.gate, each, ids, factors), few(w.up, each, ids, factors));
    y = shared_out(few(w.down, inner, ids, factors).reshape({tokens, e.used, dim}));
  } else if (!learns(x, w)) {
    y = shared_out(by_expert(flat, w, choice.ids, x.size(1) >= kPromptTokens));
  } else {  // matrices' gradients are sums over all tokens
    const Tensor all = flat.unsqueeze(0);
    const Tensor outer = every(w.down, activated(every(w.gate, all), every(w.up, all)));
    const Tensor is = choice.ids.unsqueeze(-1) == Tensor::arange(e.count);
    const Tensor shares = is.where(choice.shares.unsqueeze(-1), 0.0F).sum(1);  // (tokens, experts)
    y = (outer * shares.T().unsqueeze(-1)).sum(0);
  }
  if (w.shared_up.defined()) {
    Tensor shared = w.shared_down(gated(w.shared_gate, w.shared_up, flat));
    if (w.shared_router.defined()) shared = w.shared_router(flat).sigmoid() * shared;
    y = y + shared;
  }
  return y.reshape(x.dims());
}

}  // namespace weft::llm
