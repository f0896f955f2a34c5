// Blocks: the loop tree of a program while its instructions are put in order.
#pragma once
#include <vector>

#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/graph/graph.h"

namespace weft::lower {

/// The last of the sums of words that a multiply-add waits for, behind a few operations; null where
/// there is none.
NodeRef sum_of_words(NodeRef product);

/// Every instruction is in one block; a block is the body of one loop, or the top. What must come
/// first is known as edges between the items of one block, which are instructions and whole loops.
class Blocks {
 public:
  static constexpr int kTop = 0;

  explicit Blocks(size_t expected);
  int add_loop(int parent);
  void set_range(Graph& g, int block, NodeRef range);

  /// Puts `n` into the innermost of `at_least` and the blocks of its sources, after them.
  void add(NodeRef n, int at_least);
  /// `n` has an effect: it is in the program although nothing uses it.
  void add_root(NodeRef n);
  void after(NodeRef later, NodeRef earlier);
  void after_loop(NodeRef later, int loop);

  bool contains(NodeRef n) const { return n->mark < items_.size() && items_[n->mark].node == n; }
  int block(NodeRef n) const { return at(item_of(n)).block; }
  int parent(int block) const { return blocks_[static_cast<size_t>(block)].parent; }
  int depth(int block) const { return blocks_[static_cast<size_t>(block)].depth; }
  /// The inner one of two nested blocks.
  int deeper(int a, int b) const { return depth(a) >= depth(b) ? a : b; }

  /// All instructions that roots need: within a block, what a root needs comes right before it,
  /// and registers that each take several multiply-adds take them in turns.
  std::vector<NodeRef> in_order();

 private:
  struct Block {
    int parent, depth;
    int item;  // this loop, in its parent
    NodeRef range = nullptr, end = nullptr;
    std::vector<int> roots;
    bool rooted = false;
  };

  struct Item {
    NodeRef node;                     // null for loops
    int block;                        // that it is in
    int loop = -1;                    // the block that it is; -1 for instructions
    char state = 0;                   // 0: not emitted, 1: being emitted, 2: emitted
    SmallVector<int, 4> before = {};  // items of the same block
  };

  Item& at(int item) { return items_[static_cast<size_t>(item)]; }
  const Item& at(int item) const { return items_[static_cast<size_t>(item)]; }
  /// Nodes hold the number of their item: a program's graph is private.
  int item_of(NodeRef n) const {
    WEFT_CHECK(contains(n), "{} is in no block", info(n->op).mnemonic);
    return static_cast<int>(n->mark);
  }
  int new_item(NodeRef n, int block);
  int item_in(int item, int block) const;  // the item of `block` that `item` is or is inside of
  void add_edge(int later, int earlier);
  void emit_block(int block, std::vector<NodeRef>& out);
  void emit_item(int item, std::vector<NodeRef>& out);
  void emit_needed(int root, std::vector<NodeRef>& out);
  void emit_chains(const Block& block, std::vector<NodeRef>& out);
  void emit_words(std::span<const NodeRef> side_by_side, const Block& block,
                  std::vector<NodeRef>& out);

  std::vector<Block> blocks_;
  std::vector<Item> items_;
};

}  // namespace weft::lower
