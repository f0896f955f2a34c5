// The op enum, groups and traits, generated from ops.def.
#pragma once
#include <cstdint>
#include <string_view>

namespace weft {

enum class Op : uint8_t {
#define WEFT_OP(id, name, mnemonic, group, arity, traits, schema, doc) name = id,
#include "weft/graph/ops.def"
#undef WEFT_OP
};

enum class OpGroup : uint8_t {
  Leaf,
  Movement,
  Unary,
  Binary,
  Ternary,
  Loop,
  Storage,
  Memory,
  Linear
};

enum OpTrait : uint16_t {
  kCommutative = 1,
  kAssociative = 2,
  kIdempotent = 4,
  kBoolResult = 8,
  kFloatOnly = 16,
  kIntOnly = 32,
  kApproximate = 64,  ///< within a stated error; every other op is exact or rounded once
  kWords = 128,       ///< (a, b, c): sums products of elements packed in the u32 of a and b
  kTable = 256,       ///< (a, t...): what bytes of the u32 a choose from constants
};

struct OpInfo {
  Op op;
  const char* name;
  const char* mnemonic;
  OpGroup group;
  int arity;
  uint16_t traits;
  const char* schema;
  const char* doc;
};

constexpr OpInfo kOps[] = {
#define WEFT_OP(id, name, mnemonic, group, arity, traits, schema, doc) \
  {Op::name, #name, mnemonic, OpGroup::group, arity, traits, schema, doc},
#include "weft/graph/ops.def"
#undef WEFT_OP
};

namespace detail {
struct OpIndex {
  uint8_t row[256];
};
constexpr OpIndex op_index() {
  OpIndex index{};
  for (uint8_t& r : index.row) r = 255;
  for (uint8_t i = 0; i < sizeof(kOps) / sizeof(kOps[0]); ++i)
    index.row[static_cast<uint8_t>(kOps[i].op)] = i;
  return index;
}
inline constexpr OpIndex kOpIndex = op_index();
}  // namespace detail

/// True when `id` is the stable id of an op: check it before casting untrusted bytes to Op.
constexpr bool is_op_id(uint8_t id) { return detail::kOpIndex.row[id] != 255; }
constexpr const OpInfo& info(Op op) { return kOps[detail::kOpIndex.row[static_cast<uint8_t>(op)]]; }
constexpr bool has_trait(Op op, OpTrait t) { return (info(op).traits & t) != 0; }
constexpr OpGroup group(Op op) { return info(op).group; }
constexpr bool is_alu(Op op) {
  return group(op) == OpGroup::Unary || group(op) == OpGroup::Binary ||
         group(op) == OpGroup::Ternary;
}
/// What sums of products sum.
constexpr bool is_product(Op op) { return op == Op::Mul || has_trait(op, kWords); }
/// a*b + c, or a sum of such products.
constexpr bool is_mul_acc(Op op) { return op == Op::MulAcc || has_trait(op, kWords); }
constexpr bool is_movement(Op op) { return group(op) == OpGroup::Movement; }

/// How a reduction, scan or combining store folds values together.
enum class Fold : uint8_t { Set, Add, Mul, Max, Min, And, Or };
constexpr Op fold_op(Fold f) {
  switch (f) {
    case Fold::Add: return Op::Add;
    case Fold::Mul: return Op::Mul;
    case Fold::Max: return Op::Max;
    case Fold::Min: return Op::Min;
    case Fold::And: return Op::And;
    case Fold::Or: return Op::Or;
    case Fold::Set: break;
  }
  return Op::Where;
}
constexpr std::string_view fold_name(Fold f) {
  constexpr std::string_view names[] = {"set", "add", "mul", "max", "min", "and", "or"};
  return names[static_cast<int>(f)];
}

/// What carries a range: which hardware dimension or loop form. That a range is reduced is said by
/// its Reduce, not here.
enum class Binding : uint8_t { Loop, Core, Unroll, Vector, Grid, Group, Tile };
constexpr std::string_view binding_name(Binding b) {
  constexpr std::string_view names[] = {"loop", "core",  "unroll", "vector",
                                        "grid", "group", "tile"};
  return names[static_cast<int>(b)];
}

}  // namespace weft
