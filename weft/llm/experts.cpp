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

/// x (experts or 1, tokens, in) by every expert: (experts, tokens, out).
Tensor every(const Projection& p, const Tensor& x) {
  const Tensor y = x.matmul(p.weight.value().T());
  return p.bias.defined() ? y + p.bias.unsqueeze(1) : y;
}

/// Up to so many tokens read their own experts; more are multiplied with all of them, and what was
/// not chosen counts 0. Products of blocks of rows with matrices that are chosen by data, which
/// would leave most of that out, take far longer than those with matrices that lie in order.
constexpr int64_t kFewTokens = 4;

}  // namespace

Tensor Network::experts(const Tensor& x, const ExpertWeights& w) const {
  const Experts& e = config_.experts;
  const int64_t tokens = x.size(0) * x.size(1), dim = x.size(2);
  const Tensor flat = x.reshape({tokens, dim});
  const Chosen choice = chosen(e, w.router(flat), w.rank_bias);
  Tensor y;
  if (tokens <= kFewTokens) {
    const Tensor one = flat.unsqueeze(1);
    const Tensor inner = activated(few(w.gate, one, choice.ids), few(w.up, one, choice.ids));
    y = (few(w.down, inner, choice.ids) * choice.shares.unsqueeze(-1)).sum(1);
  } else {
    const Tensor all = flat.unsqueeze(0);
    const Tensor outer = every(w.down, activated(every(w.gate, all), every(w.up, all)));
    const Tensor is = choice.ids.unsqueeze(-1) == Tensor::arange(e.count);
    const Tensor shares = is.where(choice.shares.unsqueeze(-1), 0.0F).sum(1);  // (tokens, experts)
    y = (outer * shares.T().unsqueeze(-1)).sum(0);
  }
  if (w.shared_up.defined()) {
    Tensor shared = w.shared_down(activated(w.shared_gate(flat), w.shared_up(flat)));
    if (w.shared_router.defined()) shared = w.shared_router(flat).sigmoid() * shared;
    y = y + shared;
  }
  return y.reshape(x.dims());
}

}  // namespace weft::llm
