// The order of the optimiser's steps: split digits, merge loops, choose a tiling, peel, tile,
// order, share out.
#include "weft/optimize/optimize.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/optimize/digits.h"
#include "weft/optimize/place.h"
#include "weft/optimize/tiling.h"

namespace weft {
namespace {

using namespace optimize;

class Optimiser {
 public:
  Optimiser(const Kernel& kernel, const Target& target, const OptimizeOptions& options)
      : target_(target), options_(options), out_{std::make_shared<Graph>(), nullptr, kernel.name} {
    out_.sink = out_.graph->import(kernel.sink);
  }

  Kernel run() {
    KernelInfo info(out_.sink);
    if (!options_.enabled || info.frozen || info.ranges.empty()) return std::move(out_);
    split_digits(info);
    merge_ranges(info);
    order_reductions(info);
    const CostModel model(info, target_);
    const Tiling tiling = choose_tiling(info, model, target_);
    if (options_.report) options_.report->cost = model.cost(tiling);
    const int innermost = model.innermost(tiling);  // before `info`, which the model reads, moves
    tile(std::move(info), tiling, innermost);
    return std::move(out_);
  }

 private:
  bool recording() const { return options_.report != nullptr; }
  void keep_notes(const LoopNest& nest) {
    if (!recording()) return;
    auto& all = options_.report->applied;
    all.insert(all.end(), nest.applied().begin(), nest.applied().end());
  }

  /// So that every access moves evenly with every range.
  void split_digits(KernelInfo& info) {
    const std::vector<Digits> all = find_digits(info);
    if (all.empty()) return;
    LoopNest nest(*out_.graph, info, recording());
    for (const Digits& d : all) {
      LoopNest::Axis rest = d.range;
      for (int64_t size : d.sizes) rest = nest.split(rest, size, Tail::Exact).inner;
    }
    out_.sink = nest.apply();
    keep_notes(nest);
    info = KernelInfo(out_.sink);
  }

  void merge_ranges(KernelInfo& info) {
    for (Mergeable pair{}; find_mergeable(info, 0, pair);) {
      LoopNest nest(*out_.graph, info, recording());
      nest.fuse(pair.outer, pair.inner);
      out_.sink = nest.apply();
      keep_notes(nest);
      info = KernelInfo(out_.sink);
    }
  }

  void order_reductions(KernelInfo& info) {
    LoopNest nest(*out_.graph, info, recording());
    if (!order_sums(nest, info)) return;
    out_.sink = nest.apply();
    keep_notes(nest);
    info = KernelInfo(out_.sink);
  }

  /// Peels until every cut of a reduction is exact. Ranges keep their positions: rests come last.
  KernelInfo peel(KernelInfo info, const Tiling& tiling) {
    Graph& g = *out_.graph;
    for (size_t r = 0; r < tiling.ranges.size(); ++r) {
      const int64_t size = tiling.ranges[r].size();
      if (size == 1 || cut_of(info, r, size) != Cut::Peel) continue;
      NodeRef n = info.ranges[r].node->src(0);
      NodeRef main = g.mul(g.idiv(n, g.index(size)), g.index(size));
      if (recording())
        options_.report->applied.push_back(strformat("peel the rest of r{} modulo {}", r, size));
      out_.sink = peel_reduction(g, info, r, main);
      info = KernelInfo(out_.sink);
    }
    return info;
  }

  void tile(KernelInfo whole, const Tiling& tiling, int innermost) {
    const KernelInfo info = peel(std::move(whole), tiling);
    LoopNest nest(*out_.graph, info, recording());
    cut_ranges(nest, info, tiling);
    order_loops(nest, info, innermost);
    keep_runs(nest, info);
    share_out(nest, info);
    out_.sink = nest.apply();
    keep_notes(nest);
  }

  static void cut_ranges(LoopNest& nest, const KernelInfo& info, const Tiling& tiling) {
    for (size_t r = 0; r < tiling.ranges.size(); ++r) {
      const Tiling::Of of = tiling.ranges[r];
      if (of.size() == 1) continue;
      const Cut cut = cut_of(info, r, of.size());
      WEFT_CHECK(cut == Cut::Exact || cut == Cut::Overlap, "range {} cannot be cut", r);
      bind_tile(nest,
                nest.split(r, of.size(), cut == Cut::Exact ? Tail::Exact : Tail::Overlap).inner,
                of);
    }
  }

  static void bind_tile(LoopNest& nest, LoopNest::Axis tile, Tiling::Of of) {
    if (of.lanes == 1) return nest.bind(tile, Binding::Unroll);
    if (of.copies == 1) return nest.bind(tile, Binding::Vector);
    const LoopNest::Parts parts = nest.vectorise(tile, of.lanes, Tail::Exact);
    nest.bind(parts.outer, Binding::Unroll);
  }

  const Target& target_;
  const OptimizeOptions& options_;
  Kernel out_;
};

}  // namespace

Kernel optimize_kernel(const Kernel& kernel, const Target& target, const OptimizeOptions& options) {
  return Optimiser(kernel, target, options).run();
}

}  // namespace weft
