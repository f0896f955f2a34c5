#include "weft/render/scopes.h"

#include <set>

#include "weft/base/error.h"

namespace weft {

namespace {

bool opens_block(Op op) { return op == Op::Range || op == Op::If; }
bool closes_block(Op op) { return op == Op::EndRange || op == Op::EndIf; }

}  // namespace

bool is_program_leaf(NodeRef n) {
  return n->op == Op::Const || n->op == Op::Param || n->op == Op::Variable || n->op == Op::Local;
}

std::vector<NodeRef> local_arrays(const LinearProgram& program) {
  std::vector<NodeRef> arrays;
  std::set<int64_t> known;
  for (NodeRef n : program.code) {
    const bool access = n->op == Op::Load || n->op == Op::Store;
    if (access && n->src(0)->op == Op::Local && known.insert(n->src(0)->int_arg(0)).second)
      arrays.push_back(n->src(0));
  }
  return arrays;
}

NodeMap<bool> escaping_values(const LinearProgram& program) {
  NodeMap<bool> escaping;
  std::vector<uint32_t> open_blocks{0}, closed{0};
  uint32_t blocks = 0;
  NodeMap<uint32_t> home(program.code.size());
  for (NodeRef n : program.code) {
    if (is_program_leaf(n)) continue;
    if (closes_block(n->op)) {
      WEFT_CHECK(open_blocks.size() > 1, "{}: a block is closed that is not open", program.name);
      closed[open_blocks.back()] = 1;
      open_blocks.pop_back();
      continue;
    }
    for (NodeRef s : n->src()) {
      const uint32_t* block = home.find(s);
      if (block && closed[*block] != 0) escaping.set(s, true);
    }
    if (opens_block(n->op)) {
      open_blocks.push_back(++blocks);
      closed.push_back(0);
    }
    if (home.contains(n)) escaping.set(n, true);
    home.set(n, open_blocks.back());
  }
  WEFT_CHECK(open_blocks.size() == 1, "{}: a loop or guard is not closed", program.name);
  return escaping;
}

}  // namespace weft
