// Feed-forward parts of which each token takes a few (Shazeer et al. 2017).
#include <cmath>

#include "weft/llm/network.h"

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

Chosen chosen(const Experts& e, const Tensor& scores, const Tensor& rank_bias) {
  using Gate = Experts::Gate;
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

/// x (tokens, used or 1, in) by the experts' own matrices, only those read: (tokens, used, out).
Tensor few(const Projection& p, const Tensor& x, const Tensor& ids) {
  const Tensor w = p.weight.value().index({ids});  // (tokens, used, out, in)
  const Tensor y = w.matmul(x.unsqueeze(-1)).squeeze(-1);
  return p.bias.defined() ? y + p.bias.index({ids}) : y;
}

/// x (blocks, rows, in) by the matrix of each block's expert: (blocks, rows, out).
Tensor blocks_of(const Projection& p, const Tensor& x, const Tensor& experts) {
  const Tensor y = x.matmul(p.weight.value().index({experts}).T());
  return p.bias.defined() ? y + p.bias.index({experts}).unsqueeze(1) : y;
}

/// Pairs of a token and an expert of it, those of one expert together, in blocks of rows that
/// belong to a single expert. How many an expert has is not known before: there are as many blocks
/// as it can take.
struct Grouped {
  Tensor experts;  // (blocks): of each
  Tensor tokens;   // (blocks, rows): of each; of rows that no pair needs, any
  Tensor rows;     // (tokens, used): where each pair lies among all rows
};

Grouped grouped(const Tensor& ids, int64_t experts, int64_t block) {
  const int64_t pairs = ids.size(0) * ids.size(1);
  const int64_t blocks = (pairs + experts * (block - 1)) / block;
  const Tensor of_pair = ids.reshape({pairs, 1});
  const Tensor is = (of_pair == Tensor::arange(experts)).cast(DType::I32);  // (pairs, experts)
  const Tensor needed = (is.sum(0) + (block - 1)).floor_div(block);         // blocks
  const Tensor ends = needed.cumsum(0);
  const Tensor row = (ends - needed) * block + is.cumsum(0) - 1;
  const Tensor rows = (is * row).sum(1);
  const Tensor token = Tensor::arange(pairs).floor_div(ids.size(1)).cast(DType::I32);
  const Tensor here = Tensor::arange(blocks).unsqueeze(-1);
  return {
      (ends <= here).cast(DType::I32).sum(1).clamp_max(experts - 1),
      Tensor::zeros({blocks * block}, DType::I32).scatter(0, rows, token).reshape({blocks, block}),
      rows.reshape(ids.dims())};
}

/// Up to so many tokens read their own experts, one by one; more are put together by expert.
constexpr int64_t kFewTokens = 4;

/// Rows of a block: few make little to compute that nobody needs, many read matrices seldom.
int64_t block_rows(int64_t pairs, int64_t experts) {
  int64_t rows = 8;
  while (rows < 64 && rows * experts < pairs) rows *= 2;
  return rows;
}

}  // namespace

Tensor Network::experts(const Tensor& x, const ExpertWeights& w) const {
  const Experts& e = config_.experts;
  const int64_t tokens = x.size(0) * x.size(1), dim = x.size(2);
  const Tensor flat = x.reshape({tokens, dim});
  const Chosen choice = chosen(e, w.router(flat), w.rank_bias);
  Tensor each;  // (tokens, used, dim)
  if (tokens <= kFewTokens) {
    const Tensor one = flat.unsqueeze(1);
    each = few(w.down, activated(few(w.gate, one, choice.ids), few(w.up, one, choice.ids)),
               choice.ids);
  } else {
    const Grouped g = grouped(choice.ids, e.count, block_rows(tokens * e.used, e.count));
    const Tensor all = flat.index({g.tokens});  // (blocks, rows, dim)
    const Tensor inner =
        activated(blocks_of(w.gate, all, g.experts), blocks_of(w.up, all, g.experts));
    each = blocks_of(w.down, inner, g.experts).reshape({-1, dim}).index({g.rows});
  }
  Tensor y = (each * choice.shares.unsqueeze(-1)).sum(1);
  if (w.shared_up.defined()) {
    Tensor shared = w.shared_down(activated(w.shared_gate(flat), w.shared_up(flat)));
    if (w.shared_router.defined()) shared = w.shared_router(flat).sigmoid() * shared;
    y = y + shared;
  }
  return y.reshape(x.dims());
}

}  // namespace weft::llm
