#include "weft/graph/lanes.h"

namespace weft {
namespace {

bool is_loop_integer(DType d) { return d == DType::Index || d == DType::I32 || d == DType::I64; }

const char* same_dtype(const NodeSpec& s) {
  return s.src[0]->dtype == s.dtype ? nullptr : "changes the dtype";
}

}  // namespace

const char* set_acc_problem(const NodeSpec& s) {
  if (s.src[0]->op != Op::Acc) return "sets no register";
  if (s.src[1]->dtype != s.src[0]->dtype || s.src[1]->lanes != s.src[0]->lanes)
    return "the register has another dtype";
  return nullptr;
}

const char* get_acc_problem(const NodeSpec& s) {
  if (s.src[0]->op != Op::Acc) return "reads no register";
  return s.lanes == s.src[0]->lanes ? same_dtype(s) : "the register has other lanes";
}

const char* vec_problem(const NodeSpec& s) {
  if (s.src.size() != s.lanes) return "has as many scalars as lanes";
  for (NodeRef x : s.src)
    if (x->dtype != s.dtype || x->lanes != 1) return "is made from scalars of its dtype";
  return nullptr;
}

const char* lane_problem(const NodeSpec& s) {
  if (s.ints[0] < 0 || s.ints[0] >= s.src[0]->lanes) return "no such lane";
  return s.lanes == 1 ? same_dtype(s) : "a lane is a scalar";
}

const char* splat_problem(const NodeSpec& s) {
  return s.src[0]->lanes == 1 ? same_dtype(s) : "takes a scalar";
}

const char* trn_problem(const NodeSpec& s) {
  const int64_t size = s.ints[0], odd = s.ints[1];
  for (NodeRef x : s.src)
    if (x->dtype != s.dtype || x->lanes != s.lanes) return "takes vectors of its dtype and lanes";
  if (size < 1 || s.lanes % (2 * size) != 0) return "its lanes are no pairs of blocks";
  return odd == 0 || odd == 1 ? nullptr : "blocks are even or odd";
}

const char* tile_load_problem(const NodeSpec& s) {
  if (s.src[0]->op != Op::Param || s.dtype != DType::U32) return "reads words of a param";
  for (NodeRef x : s.src.subspan(1))
    if (!is_loop_integer(x->dtype) || x->lanes != 1) return "an index or a stride is no integer";
  return s.ints[0] > 0 && s.lanes % s.ints[0] == 0 ? nullptr : "its lanes are no rows";
}

const char* tile_dot_problem(const NodeSpec& s) {
  const DType sum = s.op == Op::TileDot2 ? DType::F32 : DType::I32;
  for (NodeRef x : s.src)
    if (x->lanes != s.lanes || x->dtype != (x == s.src[2] ? sum : DType::U32))
      return "takes tiles of words and one of its sum";
  return s.dtype == sum ? nullptr : "the result has another dtype";
}

}  // namespace weft
