// What is wrong with a node of a linear program that registers or lanes of them make; null where
// nothing is.
#pragma once
#include "weft/graph/graph.h"

namespace weft {

const char* set_acc_problem(const NodeSpec& s);
const char* get_acc_problem(const NodeSpec& s);
const char* vec_problem(const NodeSpec& s);
const char* lane_problem(const NodeSpec& s);
const char* splat_problem(const NodeSpec& s);
const char* trn_problem(const NodeSpec& s);
const char* tile_load_problem(const NodeSpec& s);
const char* tile_dot_problem(const NodeSpec& s);

}  // namespace weft
