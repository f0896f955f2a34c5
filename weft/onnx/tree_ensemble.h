// Trees of decisions, in the form in which rows are sent down them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::onnx {

enum class Branch : uint8_t {
  LessEqual,
  Less,
  GreaterEqual,
  Greater,
  Equal,
  NotEqual,
  Member,
  Leaf
};
enum class Aggregate : uint8_t { Average, Sum, Min, Max };

struct TreeNode {
  Branch branch = Branch::Leaf;
  bool missing_is_true = false;  // which way NaN goes
  int64_t feature = 0;
  double split = 0;                   // or, of Member, the set's number
  uint32_t yes = 0, no = 0;           // nodes
  uint32_t votes = 0, votes_end = 0;  // of a leaf
};
struct Vote {
  int64_t target = 0;
  double weight = 0;
};

struct TreeEnsemble {
  std::vector<TreeNode> nodes;
  std::vector<uint32_t> roots;
  std::vector<Vote> votes;
  std::vector<std::vector<double>> sets;  // sorted
  int64_t targets = 1;
  Aggregate aggregate = Aggregate::Sum;

  /// Of every node and vote the index is in range, and no walk from a root comes back: what walk()
  /// relies on, and rows of features_used() numbers. Otherwise what is wrong.
  const char* problem() const;
  int64_t features_used() const;
  /// What the trees say of one row: (targets) sums, and whether a leaf voted at all.
  void walk(std::span<const double> row, std::span<double> scores, std::span<uint8_t> voted) const;
};

}  // namespace weft::onnx
