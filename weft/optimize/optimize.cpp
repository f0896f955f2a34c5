// The order of the optimiser's steps, as a table.
#include "weft/optimize/optimize.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/hash.h"
#include "weft/graph/print.h"
#include "weft/graph/words.h"
#include "weft/optimize/borders.h"
#include "weft/optimize/cost.h"
#include "weft/optimize/digits.h"
#include "weft/optimize/loop_order.h"
#include "weft/optimize/passes.h"
#include "weft/optimize/plan_space.h"
#include "weft/optimize/read_words.h"
#include "weft/optimize/tiling.h"

namespace weft {
namespace {

using namespace optimize;
using optimize::State;

bool recording(const State& s) { return s.options.report != nullptr; }

/// The kernel with these loops; `info` is of the one before.
void rebuild(State& s, const LoopNest& nest) {
  s.kernel.sink = nest.apply();
  if (!recording(s)) return;
  auto& all = s.options.report->applied;
  all.insert(all.end(), nest.applied().begin(), nest.applied().end());
}

void apply(State& s, const LoopNest& nest) {
  rebuild(s, nest);
  s.info = KernelInfo(s.kernel.sink);
}

/// So that every access moves evenly with every range.
void split_digits(State& s) {
  const std::vector<Digits> all = find_digits(s.info, s.target.lanes(DType::F32));
  if (all.empty()) return;
  LoopNest nest(*s.kernel.graph, s.info, recording(s));
  for (const Digits& d : all) {
    LoopNest::Axis rest = d.range;
    for (int64_t size : d.sizes) rest = nest.split(rest, size, Tail::Exact).inner;
  }
  apply(s, nest);
}

void join_words(State& s) {
  if (!s.target.machine_code || std::ranges::none_of(s.info.order, may_be_word)) return;
  NodeRef joined = read_words(*s.kernel.graph, s.kernel.sink);
  if (joined == s.kernel.sink) return;
  if (recording(s)) s.options.report->applied.push_back("read words where they lie");
  s.kernel.sink = joined;
  s.info = KernelInfo(joined);
}

void merge_ranges(State& s) {
  for (Mergeable pair{}; find_mergeable(s.info, 0, pair);) {
    LoopNest nest(*s.kernel.graph, s.info, recording(s));
    nest.fuse(pair.outer, pair.inner);
    apply(s, nest);
  }
}

void split_borders(State& s) {
  Graph& g = *s.kernel.graph;
  if (s.target.vector_bits == 0 || (s.options.plan && !s.options.plan->borders)) return;
  const std::optional<Borders> found = find_borders(s.info, s.target, g);
  if (!found) return;
  if (recording(s))
    s.options.report->applied.push_back(
        strformat("peel the borders of r{}: {} to {}", found->range, found->first, found->last));
  s.kernel.sink = peel_borders(g, s.info, *found);
  const bool repeatable = s.info.repeatable;
  s.info = KernelInfo(s.kernel.sink);
  s.info.repeatable = repeatable;  // its stores are of different places
}

void order_reductions(State& s) {
  LoopNest nest(*s.kernel.graph, s.info, recording(s));
  const bool hoisted = hoist_reductions(nest, s.info);
  // Steps through memory depend on layouts, which depend on how long vectors are.
  const bool ordered = !s.target.canonical && order_sums(nest, s.info);
  if (hoisted || ordered) apply(s, nest);
}

bool grouped(const State& s) { return s.groups.kind != GroupPlan::Kind::Items; }

void plan_groups(State& s) { s.groups = choose_groups(s.info, s.target); }

/// Pads every reduction that items share out, or walk in blocks, to whole rounds.
void pad_groups(State& s) {
  if (!grouped(s)) return;
  const auto pad = [&](size_t r, int64_t multiple, const Product* product) {
    s.kernel.sink = pad_reduction(*s.kernel.graph, s.info, r, multiple, product);
    s.info = KernelInfo(s.kernel.sink);
  };
  if (s.groups.kind == GroupPlan::Kind::Tile) {
    const std::optional<Product> product = find_product(s.info);
    pad(product->k, s.groups.tile.depth, &*product);
  }
  for (size_t r : s.groups.folded) pad(r, s.groups.items, nullptr);
}

void launch_groups(State& s) {
  if (!grouped(s)) return;
  LoopNest nest(*s.kernel.graph, s.info, recording(s));
  bind_groups(nest, s.info, s.groups, s.target.groups);
  rebuild(s, nest);
}

void choose(State& s) {
  if (grouped(s)) return;
  const PlanSpace space(s.info, s.target);
  const LoopPlan* given = s.options.plan;
  s.foreign = given && !space.legal(*given);
  const LoopPlan plan = given && !s.foreign ? *given : space.analytic();
  if (plan.unit())
    s.tiles = space.tiles();
  else
    s.tiling = space.tiling(plan);
  s.innermost = static_cast<int>(plan.innermost);
  s.stream = plan.stream;
}

/// A length that is too short for the tile of `whole` may still fill vectors, or be a few rows; one
/// that is too short for a vector, a narrow one.
void narrow(State& s, size_t whole, size_t shorter) {
  constexpr int64_t kFewRows = 4;
  const auto [lanes, unroll] = s.tiling.ranges[whole];
  const Tiling::Of few = lanes == 1   ? Tiling::Of{1, kFewRows}
                         : unroll > 1 ? Tiling::Of{lanes, 1}
                                      : Tiling::Of{std::min(lanes, kFewLanes), 1};
  if (few.size() < lanes * unroll && cut_of(s.info, shorter, few.size()) != Cut::No)
    s.tiling.ranges[shorter] = few;
}

/// Likewise what is left of a sum along vectors.
void narrow_rest(State& s, size_t whole, size_t rest) {
  if (s.tiling.ranges[whole].lanes > kFewLanes && cut_of(s.info, rest, kFewLanes) == Cut::Peel)
    s.tiling.ranges[rest] = {kFewLanes, 1};
}

/// Leaves no element to be summed by itself; false where some would be.
bool end_in_vector(State& s, size_t r) {
  const Tiling::Of tile = s.tiling.ranges[r];
  const size_t before = s.info.ranges.size();
  if (!ends_in_vector(s.info, r, tile) || before + 2 > kMaxRanges) return false;
  if (recording(s))
    s.options.report->applied.push_back(
        strformat("end r{} in a vector that overlaps, behind those modulo {}", r, tile.size()));
  const bool repeatable = s.info.repeatable;
  s.kernel.sink = peel_vectors(*s.kernel.graph, s.info, r, tile.size(), tile.lanes);
  s.info = KernelInfo(s.kernel.sink);
  s.info.repeatable = repeatable;
  s.tiling.ranges.resize(s.info.ranges.size(), Tiling::Of{tile.lanes, 1});
  return true;
}

/// Whether the kernel writes elements that only the iterations which write them have read.
bool updates_in_place(const KernelInfo& info) {
  return !info.repeatable && !info.has_folds() && !info.has_loops &&
         std::ranges::all_of(info.sink->src(), [](NodeRef s) {
           return s->int_arg(0) == static_cast<int64_t>(Fold::Set) && s->int_arg(1) != 0;
         });
}

bool all_stores_need(const KernelInfo& info, size_t r) {
  return std::ranges::all_of(
      info.accesses, [r](const Access& a) { return !a.is_store() || (a.deps & bit(r)) != 0; });
}

/// The largest tile that what is left of a range fills, so that no loop of its own remains.
Tiling::Of tile_of_rest(int64_t rest, int64_t lanes) {
  if (rest >= lanes) return {lanes, rest / lanes};
  const auto fewer = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rest)));
  return fewer >= kFewLanes ? Tiling::Of{fewer, 1} : Tiling::Of{1, rest};
}

/// What updates in place computes nothing twice: what is left of its rows behind their tiles, in
/// smaller ones, instead of under a mask for each element. Stores wait for all loads of what they
/// overwrite: there is one loop over a row, inside of all others, and cores share those.
void peel_updates(State& s) {
  if (s.target.vector_bits == 0 || s.tiling.ranges.size() < 2 || !updates_in_place(s.info)) return;
  const size_t row = s.tiling.ranges.size() - 1;
  const int64_t lanes = s.tiling.ranges[row].lanes;
  for (size_t r = 0; r < row; ++r) {
    const RangeInfo& outer = s.info.ranges[r];
    if (s.tiling.ranges[r].size() > 1 || !outer.constant || outer.extent == 1 || !outer.parallel ||
        !outer.free() || !all_stores_need(s.info, r))
      return;
  }
  if (!all_stores_need(s.info, row)) return;
  for (size_t r = row; r < s.tiling.ranges.size(); ++r) {
    const int64_t size = s.tiling.ranges[r].size(), rest = s.info.ranges[r].extent % size;
    if (lanes == 1 || rest == 0 || !s.info.ranges[r].constant ||
        s.info.ranges.size() == kMaxRanges || cut_of(s.info, r, size) != Cut::Overlap)
      return;
    if (recording(s))
      s.options.report->applied.push_back(
          strformat("peel the remainder of r{} modulo {}", r, size));
    s.kernel.sink = peel_borders(*s.kernel.graph, s.info, {r, 0, s.info.ranges[r].extent - rest});
    s.info = KernelInfo(s.kernel.sink);
    s.info.repeatable = false;
    s.keeps_order = true;
    if (rest > 1) s.tiling.ranges.push_back(tile_of_rest(rest, lanes));
  }
}

/// Peels until every cut of a reduction is exact and no tile is longer than its loop. Ranges keep
/// their positions: remainders come last.
void peel(State& s) {
  peel_updates(s);
  Graph& g = *s.kernel.graph;
  const bool repeatable = s.info.repeatable;  // two stores of one are of different places
  for (size_t r = 0; r < s.tiling.ranges.size(); ++r) {
    const int64_t size = s.tiling.ranges[r].size();
    const Cut cut = size == 1 ? Cut::Exact : cut_of(s.info, r, size);
    if (cut != Cut::Peel && cut != Cut::Short) continue;
    if (cut == Cut::Peel && end_in_vector(s, r)) continue;
    NodeRef n = s.info.ranges[r].node->src(0);
    SmallVector<size_t, 8> copied;
    NodeRef made =
        cut == Cut::Short
            ? split_short(g, s.info, r, size, copied)
            : peel_reduction(g, s.info, r, g.mul(g.idiv(n, g.index(size)), g.index(size)));
    if (!made) {
      s.tiling.ranges[r] = {};
      continue;
    }
    if (recording(s))
      s.options.report->applied.push_back(
          cut == Cut::Peel ? strformat("peel the remainder of r{} modulo {}", r, size)
                           : strformat("another loop for r{} below {} iterations", r, size));
    s.kernel.sink = made;
    // What was added, and is not cut, comes first.
    s.tiling.ranges.resize(s.info.ranges.size() + 1, Tiling::Of{});
    const size_t added = s.info.ranges.size();
    for (size_t c : copied) s.tiling.ranges.push_back(s.tiling.ranges[c]);
    s.info = KernelInfo(s.kernel.sink);
    s.info.repeatable = repeatable;
    cut == Cut::Short ? narrow(s, r, added) : narrow_rest(s, r, added);
  }
}

void bind_tile(LoopNest& nest, LoopNest::Axis tile, Tiling::Of of) {
  if (of.lanes == 1) return nest.bind(tile, Binding::Unroll);
  if (of.unroll == 1) return nest.bind(tile, Binding::Vector);
  const LoopNest::Parts parts = nest.vectorise(tile, of.lanes, Tail::Exact);
  nest.bind(parts.outer, Binding::Unroll);
}

void cut_ranges(LoopNest& nest, const State& s) {
  for (size_t r = 0; r < s.tiling.ranges.size(); ++r) {
    const Tiling::Of of = s.tiling.ranges[r];
    if (of.size() == 1) continue;
    const Cut cut = cut_of(s.info, r, of.size());
    WEFT_CHECK(cut == Cut::Exact || cut == Cut::Overlap, "range {} cannot be cut", r);
    bind_tile(nest, nest.split(r, of.size(), cut == Cut::Exact ? Tail::Exact : Tail::Overlap).inner,
              of);
  }
}

/// Of the loop that workers share. Where one worker does all there is no need of many, which cost
/// quotients and remainders of its number.
int64_t items_to_share(const State& s) {
  const bool shared = s.tiles || is_worth_sharing(CostModel(s.info, s.target).total(s.tiling));
  return shared ? s.target.enough_items : 1;
}

void tile(State& s) {
  if (grouped(s)) return;
  LoopNest nest(*s.kernel.graph, s.info, recording(s));
  if (s.tiles)
    cut_tiles(nest, s.info, *s.tiles);
  else
    cut_ranges(nest, s);
  const auto share = [&] { share_out(nest, s.info, items_to_share(s), s.target.vector_bits > 0); };
  if (s.keeps_order) {
    share();
    return rebuild(s, nest);
  }
  const Machine& machine = s.target.machine;
  order_loops(nest, s.info, s.innermost);
  const auto block = [&](double part) {
    return block_stream(nest, s.info, s.innermost, std::ldexp(part, static_cast<int>(s.stream)));
  };
  const bool outruns_l3 =
      s.tiles || (s.innermost >= 0 && CostModel(s.info, s.target).outruns_l3(s.tiling));
  if (!outruns_l3 || !block(l2_stream_bytes(machine))) block(l3_stream_bytes(machine));
  keep_runs(nest, s.info, s.target.enough_items);
  keep_stores_near(nest, s.info);
  share();
  rebuild(s, nest);
}

constexpr const char* kChoice = "optimize.choose_tiling";

constexpr Pass<State> kPasses[] = {
    Pass<State>{"optimize.join_words", "words that lie in memory are not put together", join_words}
        .as_optional(),
    Pass<State>{"optimize.split_digits", "every access moves evenly with every range", split_digits}
        .as_optional(),
    Pass<State>{"optimize.merge_ranges", "ranges that every access walks as one are one",
                merge_ranges}
        .as_optional(),
    Pass<State>{"optimize.split_borders",
                "masks of rows that are copied hold for whole loops or not at all", split_borders}
        .as_optional(),
    Pass<State>{"optimize.order_reductions",
                "no reduction is repeated in a loop it does not need; sums step from far to near",
                order_reductions}
        .as_optional(),
    Pass<State>{"optimize.choose_groups",
                "what the items of a work group share is chosen, where there are any", plan_groups}
        .as_optional(),
    {"optimize.pad", "reductions that a group shares are whole rounds of its items", pad_groups},
    {"optimize.launch", "grid and group axes are bound, operands of products are staged",
     launch_groups},
    {kChoice, "lanes and unroll factors of every range are chosen by the cost model, or a search",
     choose},
    {"optimize.peel", "tiles divide the reductions; remainders have loops of their own", peel},
    {"optimize.tile", "ranges are cut, ordered and bound to cores, lanes and unroll factors", tile},
};

}  // namespace

namespace optimize {

PassView State::view() const {
  uint64_t content = hash_combine(kernel.sink->hash, static_cast<uint64_t>(innermost + 1));
  for (const Tiling::Of& of : tiling.ranges)
    content = hash_combine(content, static_cast<uint64_t>(of.lanes << 32 | of.unroll));
  return {static_cast<int64_t>(Toposort(kernel.sink).size()), content};
}

std::string State::text() const { return print_graph(kernel.sink); }

StateParts State::parts() const { return StateParts::graph({kernel.sink}); }

}  // namespace optimize

std::span<const Pass<optimize::State>> optimize_passes() { return kPasses; }

namespace optimize {

std::optional<State> open_kernel(const Kernel& kernel, const Target& target,
                                 const OptimizeOptions& options) {
  Kernel copy = copy_of(kernel);
  KernelInfo info(copy.sink);
  if (!options.enabled || info.frozen || info.ranges.empty()) return std::nullopt;
  return State{std::move(copy), target, options, std::move(info)};
}

bool prepare_choice(State& state) {
  for (const Pass<State>& pass : kPasses) {
    if (pass.name == kChoice) break;
    run_pass(pass, state);
  }
  return !grouped(state);
}

}  // namespace optimize

Kernel optimize_kernel(const Kernel& kernel, const Target& target, const OptimizeOptions& options) {
  std::optional<optimize::State> state = optimize::open_kernel(kernel, target, options);
  if (!state) return copy_of(kernel);
  run_passes(optimize_passes(), *state);
  if (!state->foreign) return std::move(state->kernel);
  OptimizeOptions analytic = options;
  analytic.plan = nullptr;
  if (options.report) *options.report = {{}, true};
  return optimize_kernel(kernel, target, analytic);
}

}  // namespace weft
