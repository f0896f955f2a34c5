// What of a repeated body need not wait for its round is computed for all rounds at once.
#pragma once

#include "weft/tensor/tracing.h"

namespace weft {

/// A body, and what it was traced on.
struct TracedRepeat {
  RepeatInputs inputs;
  Tensors slices, whole, carried;  ///< placeholders
  RepeatBody body;
};

/// A body whose products wait for as little as they can. A product of a slice with something whole
/// that waits for nothing carried is made before, a stack that the body gets a slice of. A product
/// that nothing carried waits for, in an out or in a sum over the rounds, is made afterwards, of
/// stacks that the body gives. So x @ w is one product of all rounds, and so is the sum of their
/// a^T @ b, the gradient of w, which would else be read and written in every round. Kept for it is
/// at most as much as the body is given anyway.
class SplitRepeat {
 public:
  explicit SplitRepeat(TracedRepeat given);

  const TracedRepeat& rest() const { return rest_; }
  /// Products of what is carried with something whole. A gradient would make them anew, for all
  /// rounds at once: offered as outs, they are kept in the place of that.
  const Tensors& offered() const { return offered_; }
  /// The results of the body that was given, from those of the rest.
  RepeatBody results(const RepeatBody& of_rest) const;

 private:
  void look();
  int64_t uses(NodeRef n) const;
  bool affords(std::span<const NodeRef> values);
  NodeMap<NodeRef> stacks() const;
  Tensor with_whole(NodeRef value) const;

  std::vector<NodeRef> early_products() const;
  void make_early();
  void offer_products();

  NodeRef summand(size_t carry) const;
  bool is_used_once(NodeRef product) const;
  std::vector<NodeRef> late_factors(NodeRef value) const;
  void find_late();
  void make_late();
  void leave_out();

  TracedRepeat rest_;
  Context& context_;
  Graph& g_;
  double room_ = 0;  ///< bytes that may yet be kept of a round
  Tensors offered_;
  /// Of what was carried, what is added in each round, and of the outs, what they are; null where
  /// the rest sees to it.
  std::vector<NodeRef> late_sums_, late_outs_;
  Tensors begins_;              ///< of late sums, in order
  std::vector<NodeRef> cuts_;   ///< what the rest makes for late products
  std::vector<size_t> places_;  ///< of cuts, among its outs

  std::vector<NodeRef> order_;  ///< of the bodies
  NodeMap<bool> waits_;         ///< for something carried
  NodeMap<bool> early_;         ///< what varies with the round and could be made before all rounds
  NodeMap<int64_t> uses_;       ///< as a source or a result
};

}  // namespace weft
