#include "weft/lower/blocks.h"

#include <algorithm>
#include <climits>

#include "weft/base/error.h"
#include "weft/graph/node_map.h"

namespace weft::lower {

namespace {

/// Independent multiply-adds, so that few of their operands are needed at once: those come first
/// whose operands are there already, then those that finish off an operand soonest. Of a tile of 4
/// by 7 products, 4 operands stay and 7 come and go.
std::vector<NodeRef> in_order_of_operands(std::vector<NodeRef> products) {
  struct Operand {
    int uses = 0;
    bool there = false;
  };
  NodeMap<Operand> operands(2 * products.size());
  for (NodeRef n : products)
    for (size_t k : {0, 1}) ++operands[n->src(k)].uses;
  std::vector<NodeRef> ordered;
  while (!products.empty()) {
    auto cost = [&](NodeRef n) {
      int missing = 0, left = INT_MAX;
      for (size_t k : {0, 1}) {
        const Operand& o = operands.at(n->src(k));
        missing += !o.there;
        if (o.there) left = std::min(left, o.uses);
      }
      return std::pair(missing, left);
    };
    auto best = products.begin();
    auto least = cost(*best);
    for (auto it = best + 1; it != products.end() && least.first != 0; ++it)
      if (const auto c = cost(*it); c < least) best = it, least = c;
    for (size_t k : {0, 1}) {
      Operand& o = operands[(*best)->src(k)];
      o.there = true;
      --o.uses;
    }
    ordered.push_back(*best);
    products.erase(best);
  }
  return ordered;
}

}  // namespace

NodeRef sum_of_words(NodeRef product) {
  constexpr size_t kMost = 64;  // nodes that are looked at: all, of scales of any format
  SmallVector<NodeRef, 16> open{product->src(0), product->src(1)};
  for (size_t i = 0; i < open.size() && i < kMost; ++i) {
    NodeRef n = open[i];
    if (has_trait(n->op, kWords)) return n;
    const bool scales = n->op == Op::Mul || n->op == Op::Cast || n->op == Op::Add;
    if (scales) open.append(n->src());
  }
  return nullptr;
}

Blocks::Blocks(size_t expected) {
  items_.reserve(expected);
  blocks_.push_back({-1, 0, -1, nullptr, nullptr, {}, true});
}

int Blocks::new_item(NodeRef n, int block) {
  items_.push_back({n, block});
  const auto number = static_cast<int>(items_.size()) - 1;
  if (n) n->mark = static_cast<uint32_t>(number);
  return number;
}

int Blocks::add_loop(int parent_block) {
  const int item = new_item(nullptr, parent_block), block = static_cast<int>(blocks_.size());
  at(item).loop = block;
  blocks_.push_back({parent_block, depth(parent_block) + 1, item, nullptr, nullptr, {}, false});
  return block;
}

void Blocks::set_range(Graph& g, int block, NodeRef range) {
  Block& b = blocks_[static_cast<size_t>(block)];
  b.range = range;
  const NodeRef src[] = {range};
  b.end = g.intern({Op::EndRange, DType::Void, src});
  new_item(range, block);
  add_edge(b.item, item_of(range->src(0)));
}

void Blocks::add(NodeRef n, int at_least) {
  int block = at_least;
  for (NodeRef s : n->src()) block = deeper(block, this->block(s));
  const int number = new_item(n, block);
  // What is added to comes first: the operands of a whole chain would else all wait for its
  // beginning (a block of Q4_K by one row: 24 values in memory, 375 cycles, and 2, 320).
  if (is_mul_acc(n->op)) add_edge(number, item_of(n->src(2)));
  for (NodeRef s : n->src()) {
    WEFT_CHECK(item_in(number, this->block(s)) >= 0, "{} uses a value of a loop it is not in",
               info(n->op).mnemonic);
    add_edge(number, item_of(s));
  }
}

void Blocks::add_root(NodeRef n) {
  int root = item_of(n);
  for (int b = block(n);; b = parent(b)) {
    Block& in = blocks_[static_cast<size_t>(b)];
    in.roots.push_back(root);
    if (in.rooted) return;
    in.rooted = true;
    root = in.item;
  }
}

void Blocks::after(NodeRef later, NodeRef earlier) { add_edge(item_of(later), item_of(earlier)); }
void Blocks::after_loop(NodeRef later, int loop) {
  add_edge(item_of(later), blocks_[static_cast<size_t>(loop)].item);
}

int Blocks::item_in(int item, int block) const {
  for (int b = at(item).block; b != block; b = parent(b)) {
    if (b == kTop) return -1;
    item = blocks_[static_cast<size_t>(b)].item;
  }
  return item;
}

void Blocks::add_edge(int later, int earlier) {
  int a = at(later).block, b = at(earlier).block;
  while (depth(a) > depth(b)) a = parent(a);
  while (depth(b) > depth(a)) b = parent(b);
  while (a != b) a = parent(a), b = parent(b);
  const int from = item_in(later, a), to = item_in(earlier, a);
  if (from != to) at(from).before.push_back(to);
}

std::vector<NodeRef> Blocks::in_order() {
  std::vector<NodeRef> out;
  out.reserve(items_.size() + blocks_.size());
  emit_block(kTop, out);
  return out;
}

void Blocks::emit_block(int block, std::vector<NodeRef>& out) {
  const Block& b = blocks_[static_cast<size_t>(block)];
  if (b.range) {
    out.push_back(b.range);
    at(item_of(b.range)).state = 2;
  }
  emit_chains(b, out);
  for (int root : b.roots) emit_needed(root, out);
  if (b.end) out.push_back(b.end);
}

/// One register's whole chain after the other would keep the operands of all steps alive at once;
/// compilers do not repair that, they spill.
void Blocks::emit_chains(const Block& block, std::vector<NodeRef>& out) {
  std::vector<std::vector<NodeRef>> chains;  // the last multiply-add first
  size_t longest = 0;
  for (int root : block.roots) {
    NodeRef n = at(root).node;
    if (!n || n->op != Op::SetAcc) continue;
    std::vector<NodeRef>& chain = chains.emplace_back();
    for (n = n->src(1); is_mul_acc(n->op); n = n->src(2)) {
      if (at(item_of(n)).block != at(root).block) break;
      chain.push_back(n);
    }
    longest = std::max(longest, chain.size());
  }
  if (chains.size() < 2) return;
  for (size_t step = 0; step < longest; ++step) {
    std::vector<NodeRef> side_by_side;
    for (const std::vector<NodeRef>& chain : chains)
      if (step < chain.size()) side_by_side.push_back(chain[chain.size() - 1 - step]);
    emit_words(side_by_side, block, out);
    for (NodeRef n : in_order_of_operands(std::move(side_by_side))) emit_needed(item_of(n), out);
  }
}

/// Sums of words that registers side by side add next take turns, too: each word is there for all
/// of them, and no chain is longer than what the machine looks ahead.
void Blocks::emit_words(std::span<const NodeRef> side_by_side, const Block& block,
                        std::vector<NodeRef>& out) {
  std::vector<std::vector<NodeRef>> chains;  // the last first
  size_t longest = 0;
  for (NodeRef product : side_by_side) {
    std::vector<NodeRef>& chain = chains.emplace_back();
    for (NodeRef n = sum_of_words(product); n && has_trait(n->op, kWords); n = n->src(2)) {
      if (&blocks_[static_cast<size_t>(this->block(n))] != &block) break;
      chain.push_back(n);
    }
    longest = std::max(longest, chain.size());
  }
  for (size_t step = 0; step < longest; ++step)
    for (const std::vector<NodeRef>& chain : chains)
      if (step < chain.size()) emit_needed(item_of(chain[chain.size() - 1 - step]), out);
}

void Blocks::emit_item(int item, std::vector<NodeRef>& out) {
  const int loop = at(item).loop;
  // Nesting of calls is nesting of loops.
  if (loop >= 0)
    emit_block(loop, out);
  else
    out.push_back(at(item).node);
  at(item).state = 2;
}

void Blocks::emit_needed(int root, std::vector<NodeRef>& out) {
  struct Frame {
    int item;
    size_t next;
  };
  SmallVector<Frame, 32> stack;
  auto visit = [&](int item) {
    char& state = at(item).state;
    WEFT_CHECK(state != 1, "instructions of a kernel wait for each other");
    if (state == 2) return;
    state = 1;
    stack.push_back({item, 0});
  };
  visit(root);
  while (!stack.empty()) {
    Frame& f = stack.back();
    const auto& before = at(f.item).before;
    if (f.next < before.size()) {
      visit(before[f.next++]);
      continue;
    }
    const int item = f.item;
    stack.pop_back();
    emit_item(item, out);
  }
}

}  // namespace weft::lower
