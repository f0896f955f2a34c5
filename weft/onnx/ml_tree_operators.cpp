// TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor: attributes to trees, rows down
// them on the host.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "weft/base/interrupt.h"
#include "weft/onnx/host.h"
#include "weft/onnx/ml_models.h"
#include "weft/onnx/ml_scores.h"
#include "weft/onnx/tree_ensemble.h"

namespace weft::onnx {
namespace {

// A list of floats, or of doubles in a tensor.
std::vector<double> numbers_or_tensor(const NodeCall& call, const std::string& name) {
  const std::string tensor = name + "_as_tensor";
  return call.has(tensor) ? as_doubles(*call.constant(tensor).constant()) : call.numbers(name);
}

std::vector<double> tensor_numbers(const NodeCall& call, const std::string& name) {
  return call.has(name) ? as_doubles(*call.constant(name).constant()) : std::vector<double>();
}

// All lists are as long as the first one.
void require_equal(const NodeCall& call, size_t size, size_t other, std::string_view name) {
  if (other != size)
    call.refuse("{} has {} elements where there are {} nodes; they are equally many", name, other,
                size);
}

Branch branch_named(const NodeCall& call, const std::string& name) {
  constexpr std::pair<std::string_view, Branch> kNames[] = {{"BRANCH_LEQ", Branch::LessEqual},
                                                            {"BRANCH_LT", Branch::Less},
                                                            {"BRANCH_GTE", Branch::GreaterEqual},
                                                            {"BRANCH_GT", Branch::Greater},
                                                            {"BRANCH_EQ", Branch::Equal},
                                                            {"BRANCH_NEQ", Branch::NotEqual},
                                                            {"LEAF", Branch::Leaf}};
  for (const auto& [text, branch] : kNames)
    if (name == text) return branch;
  call.refuse(
      "nodes_modes holds {}: BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, "
      "BRANCH_NEQ or LEAF",
      quoted_name(name));
}

// Nodes by (tree, node), as the classifier and the regressor list them.
using Places = std::map<std::pair<int64_t, int64_t>, uint32_t>;

uint32_t place_of(const NodeCall& call, const Places& places, int64_t tree, int64_t node) {
  const auto found = places.find({tree, node});
  if (found == places.end()) call.refuse("tree {} has no node {}", tree, node);
  return found->second;
}

void read_nodes(const NodeCall& call, TreeEnsemble& trees, Places& places) {
  const auto tree = call.ints("nodes_treeids"), node = call.ints("nodes_nodeids"),
             feature = call.ints("nodes_featureids"), yes = call.ints("nodes_truenodeids"),
             no = call.ints("nodes_falsenodeids"),
             missing = call.ints("nodes_missing_value_tracks_true");
  const std::vector<double> split = numbers_or_tensor(call, "nodes_values");
  const std::vector<std::string> modes = call.texts("nodes_modes");
  const size_t count = tree.size();
  require_equal(call, count, node.size(), "nodes_nodeids");
  require_equal(call, count, feature.size(), "nodes_featureids");
  require_equal(call, count, yes.size(), "nodes_truenodeids");
  require_equal(call, count, no.size(), "nodes_falsenodeids");
  require_equal(call, count, split.size(), "nodes_values");
  require_equal(call, count, modes.size(), "nodes_modes");
  if (!missing.empty())
    require_equal(call, count, missing.size(), "nodes_missing_value_tracks_true");
  for (size_t i = 0; i < count; ++i)
    if (!places.emplace(std::pair(tree[i], node[i]), static_cast<uint32_t>(i)).second)
      call.refuse("node {} of tree {} is there twice", node[i], tree[i]);
  std::set<uint32_t> inner;
  for (size_t i = 0; i < count; ++i) {
    TreeNode n{branch_named(call, modes[i]), !missing.empty() && missing[i] != 0, feature[i],
               split[i]};
    if (n.branch != Branch::Leaf) {
      n.yes = place_of(call, places, tree[i], yes[i]);
      n.no = place_of(call, places, tree[i], no[i]);
      inner.insert({n.yes, n.no});
    }
    trees.nodes.push_back(n);
  }
  for (uint32_t i = 0; i < count; ++i)
    if (!inner.contains(i)) trees.roots.push_back(i);
}

// Votes of the attributes `prefix`_treeids and so on, put in the order of their leaves.
void read_votes(const NodeCall& call, const std::string& prefix, TreeEnsemble& trees,
                const Places& places) {
  const auto tree = call.ints(prefix + "_treeids"), node = call.ints(prefix + "_nodeids"),
             target = call.ints(prefix + "_ids");
  const std::vector<double> weight = numbers_or_tensor(call, prefix + "_weights");
  if (node.size() != tree.size() || target.size() != tree.size() || weight.size() != tree.size())
    call.refuse(
        "{0}_treeids, {0}_nodeids, {0}_ids and {0}_weights have {1}, {2}, {3} and {4} "
        "elements; they are equally many",
        prefix, tree.size(), node.size(), target.size(), weight.size());
  std::vector<std::pair<uint32_t, size_t>> all;  // leaf, vote
  for (size_t i = 0; i < tree.size(); ++i)
    all.emplace_back(place_of(call, places, tree[i], node[i]), i);
  std::ranges::sort(all);
  for (const auto& [leaf, i] : all) {
    TreeNode& n = trees.nodes[leaf];
    if (n.votes == n.votes_end) n.votes = static_cast<uint32_t>(trees.votes.size());
    trees.votes.push_back(Vote{target[i], weight[i]});
    n.votes_end = static_cast<uint32_t>(trees.votes.size());
  }
}

TreeEnsemble read_trees(const NodeCall& call, const std::string& prefix, int64_t targets) {
  TreeEnsemble trees;
  Places places;
  trees.targets = targets;
  read_nodes(call, trees, places);
  read_votes(call, prefix, trees, places);
  return trees;
}

struct Scores {
  std::vector<double> sums;    // (rows, targets)
  std::vector<uint8_t> voted;  // of each
  int64_t rows = 0;
};

// Trees that have been looked through, once for a node.
struct CheckedTrees {
  TreeEnsemble trees;
  int64_t features_used = 0;
};

std::shared_ptr<const CheckedTrees> checked(const NodeCall& call,
                                            FunctionRef<TreeEnsemble()> read) {
  return call.kept<CheckedTrees>([&] {
    CheckedTrees made{read()};
    constexpr int64_t kMostTargets = int64_t{1} << 20;
    if (made.trees.targets < 1 || made.trees.targets > kMostTargets)
      call.refuse("{} targets: 1 to {}", made.trees.targets, kMostTargets);
    if (const char* problem = made.trees.problem()) call.refuse("the trees are none: {}", problem);
    made.features_used = made.trees.features_used();
    return made;
  });
}

Scores walk_rows(const NodeCall& call, const CheckedTrees& checked_trees) {
  const TreeEnsemble& trees = checked_trees.trees;
  const int64_t used = checked_trees.features_used;
  const Tensor x = feature_rows(call, 0);
  const int64_t features = x.size(1);
  if (features < used)
    call.refuse("the trees ask for {} features and rows have {}", used, features);
  const std::vector<double> rows = x.to_vector<double>();
  Scores all{{}, {}, x.size(0)};
  constexpr int64_t kMost = int64_t{1} << 28;
  if (all.rows > kMost / trees.targets)
    call.refuse("{} rows of {} targets: at most 2^28 scores", all.rows, trees.targets);
  const auto total = static_cast<size_t>(all.rows * trees.targets);
  all.sums.resize(total), all.voted.resize(total);
  const auto f = static_cast<size_t>(features), t = static_cast<size_t>(trees.targets);
  for (size_t row = 0; row < static_cast<size_t>(all.rows); ++row) {
    poll_interrupt();
    trees.walk(std::span(rows).subspan(row * f, f), std::span(all.sums).subspan(row * t, t),
               std::span(all.voted).subspan(row * t, t));
  }
  return all;
}

void add_base(const NodeCall& call, Scores& scores, int64_t targets) {
  const std::vector<double> base = numbers_or_tensor(call, "base_values");
  const auto count = static_cast<size_t>(targets);
  if (base.empty()) return;
  if (base.size() != 1 && base.size() != count)
    call.refuse("{} base values for {} targets: one each", base.size(), targets);
  for (size_t i = 0; i < scores.sums.size(); ++i) {
    scores.sums[i] += base[base.size() == 1 ? 0 : i % count];
    scores.voted[i] = 1;
  }
}

Aggregate aggregate_of(const NodeCall& call) {
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const std::string name = call.text("aggregate_function", "SUM");
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames))
    call.refuse("aggregate_function {}: AVERAGE, SUM, MIN or MAX", quoted_name(name));
  return static_cast<Aggregate>(found - std::begin(kNames));
}

// Two classes of which all leaves vote for one: its score alone decides, above 1/2 where all
// weights are shares.
Values of_one_class(const NodeCall& call, const TreeEnsemble& trees, const Labels& labels,
                    Scores scores) {
  const auto target = static_cast<size_t>(trees.votes.empty() ? 0 : trees.votes[0].target);
  const bool shares = std::all_of(trees.votes.begin(), trees.votes.end(),
                                  [](const Vote& v) { return v.weight >= 0; });
  const std::vector<double> base = numbers_or_tensor(call, "base_values");
  if (base.size() > 2) call.refuse("{} base values for two classes: one or two", base.size());
  std::vector<int64_t> places;
  std::vector<double> sums;
  for (size_t row = 0; row < static_cast<size_t>(scores.rows); ++row) {
    const double sum = scores.sums[row * 2 + target] + (base.empty()       ? 0
                                                        : base.size() == 1 ? base[0]
                                                                           : base[target]);
    places.push_back(sum > (shares ? 0.5 : 0));
    sums.push_back(sum);
  }
  const Tensor sum = host_numbers(sums, {scores.rows, 1}, DType::F32).tensor();
  const PostTransform post = post_transform_of(call);
  const Tensor given = target == 0 ? both_classes(sum, post, !shares)
                                   : transformed(Tensor::cat({sum.zeros_like(), sum}, 1), post);
  return {labels.at(places, {scores.rows}), given};
}

}  // namespace

Values tree_ensemble_classifier(const NodeCall& call) {
  const Labels labels = Labels::of(call, "classlabels_int64s", "classlabels_strings");
  const auto count = static_cast<int64_t>(labels.size());
  const auto kept = checked(call, [&] { return read_trees(call, "class", count); });
  const TreeEnsemble& trees = kept->trees;
  Scores scores = walk_rows(call, *kept);
  std::set<int64_t> targets;
  for (const Vote& v : trees.votes) targets.insert(v.target);
  if (count == 2 && targets.size() < 2) return of_one_class(call, trees, labels, std::move(scores));
  add_base(call, scores, count);
  std::vector<int64_t> places;
  for (int64_t row = 0; row < scores.rows; ++row) {
    const auto begin = scores.sums.begin() + row * count;
    places.push_back(std::max_element(begin, begin + count) - begin);
  }
  const Tensor given = host_numbers(scores.sums, {scores.rows, count}, DType::F32).tensor();
  return {labels.at(places, {scores.rows}), transformed(given, post_transform_of(call))};
}

Values tree_ensemble_regressor(const NodeCall& call) {
  const auto kept = checked(call, [&] {
    TreeEnsemble read = read_trees(call, "target", call.integer("n_targets", 1));
    read.aggregate = aggregate_of(call);
    return read;
  });
  const TreeEnsemble& trees = kept->trees;
  Scores scores = walk_rows(call, *kept);
  add_base(call, scores, trees.targets);
  return {regressed(host_numbers(scores.sums, {scores.rows, trees.targets}, DType::F32).tensor(),
                    post_transform_of(call))};
}

namespace {

// Sets are listed one after another, each ended by NaN.
std::vector<std::vector<double>> member_sets(const NodeCall& call) {
  std::vector<std::vector<double>> sets(1);
  for (const double x : tensor_numbers(call, "membership_values")) {
    if (std::isnan(x))
      sets.emplace_back();
    else
      sets.back().push_back(x);
  }
  for (auto& set : sets) std::sort(set.begin(), set.end());
  return sets;
}

// Interior nodes first, then the leaves.
TreeEnsemble read_new_trees(const NodeCall& call) {
  TreeEnsemble trees;
  const auto feature = call.ints("nodes_featureids"), yes = call.ints("nodes_truenodeids"),
             no = call.ints("nodes_falsenodeids"), yes_leaf = call.ints("nodes_trueleafs"),
             no_leaf = call.ints("nodes_falseleafs"), target = call.ints("leaf_targetids"),
             missing = call.ints("nodes_missing_value_tracks_true");
  const std::vector<double> split = tensor_numbers(call, "nodes_splits"),
                            modes = tensor_numbers(call, "nodes_modes"),
                            weight = tensor_numbers(call, "leaf_weights");
  const size_t count = feature.size();
  require_equal(call, count, yes.size(), "nodes_truenodeids");
  require_equal(call, count, no.size(), "nodes_falsenodeids");
  require_equal(call, count, yes_leaf.size(), "nodes_trueleafs");
  require_equal(call, count, no_leaf.size(), "nodes_falseleafs");
  require_equal(call, count, split.size(), "nodes_splits");
  require_equal(call, count, modes.size(), "nodes_modes");
  if (!missing.empty())
    require_equal(call, count, missing.size(), "nodes_missing_value_tracks_true");
  if (weight.size() != target.size())
    call.refuse("{} leaf_weights and {} leaf_targetids; they are equally many", weight.size(),
                target.size());
  const auto place = [&](int64_t id, int64_t leaf) {
    const size_t most = leaf != 0 ? target.size() : count;
    if (id < 0 || id >= static_cast<int64_t>(most))
      call.refuse("a branch leads to {} {} of {}", leaf != 0 ? "leaf" : "node", id, most);
    return static_cast<uint32_t>(static_cast<size_t>(id) + (leaf != 0 ? count : 0));
  };
  double set = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= 6)) call.refuse("nodes_modes holds {}: 0 to 6", modes[i]);
    TreeNode n{static_cast<Branch>(modes[i]),
               !missing.empty() && missing[i] != 0,
               feature[i],
               split[i],
               place(yes[i], yes_leaf[i]),
               place(no[i], no_leaf[i])};
    if (n.branch == Branch::Member) n.split = set++;
    trees.nodes.push_back(n);
  }
  for (size_t i = 0; i < target.size(); ++i) {
    const auto vote = static_cast<uint32_t>(i);
    trees.nodes.push_back({Branch::Leaf, false, 0, 0, 0, 0, vote, vote + 1});
    trees.votes.push_back({target[i], weight[i]});
  }
  for (const int64_t root : call.ints("tree_roots")) trees.roots.push_back(place(root, 0));
  trees.sets = member_sets(call);
  trees.targets = call.integer("n_targets", 1);
  return trees;
}

}  // namespace

Values tree_ensemble(const NodeCall& call) {
  const int64_t aggregate = call.integer("aggregate_function", 1);
  const int64_t post = call.integer("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || post < 0 || post > 4)
    call.refuse("aggregate_function {} and post_transform {}: 0 to 3, and 0 to 4", aggregate, post);
  const auto kept = checked(call, [&] {
    TreeEnsemble read = read_new_trees(call);
    read.aggregate = static_cast<Aggregate>(aggregate);
    return read;
  });
  const TreeEnsemble& trees = kept->trees;
  const Scores scores = walk_rows(call, *kept);
  const Tensor sums =
      host_numbers(scores.sums, {scores.rows, trees.targets}, call.tensor(0).dtype()).tensor();
  return {regressed(sums, static_cast<PostTransform>(post))};
}

}  // namespace weft::onnx
