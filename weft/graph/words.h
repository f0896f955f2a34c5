// Words that are put together from narrower elements, as values that may lie in memory as a whole.
#pragma once
#include "weft/base/function_ref.h"
#include "weft/graph/graph.h"

namespace weft {

/// An element of some memory at a flat index; 0 where it is not `valid`, null: it always is.
struct Element {
  NodeRef memory = nullptr, at = nullptr, valid = nullptr;
};

/// What is no Or of these is no word that was put together.
inline bool may_be_word(NodeRef n) {
  return n->op == Op::Or && (n->dtype == DType::U32 || n->dtype == DType::U16);
}

/// Where the element in the lowest bits of `word` lies, if the word is an Or of neighbours that lie
/// as they are put together: then the word does, on machines that have the lowest byte first. All
/// are valid together. `locate` says where an element lies, if it does in memory.
Element first_of_word(Graph& g, NodeRef word, FunctionRef<Element(NodeRef)> locate);
/// Whether it begins at a multiple of the word's size.
bool is_aligned(const Element& first, DType word);

}  // namespace weft
