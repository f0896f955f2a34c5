// Every op on every dtype as a program of its own.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tests/device/programs.h"
#include "weft/base/format.h"

namespace weft::testing {

inline constexpr DType kData[] = {DType::Bool, DType::I8,  DType::I16, DType::I32, DType::I64,
                                  DType::U8,   DType::U16, DType::U32, DType::U64, DType::F16,
                                  DType::BF16, DType::F32, DType::F64};
inline constexpr int64_t kCount = 2048;

struct Case {
  Op op;
  DType from, to;  // of the operands and the result; they differ for casts and comparisons
  int arity, lanes;
  std::string text() const {
    return strformat("{} {} -> {} x{}", info(op).mnemonic, name(from), name(to), lanes);
  }
};

inline LinearProgram program_of(const Case& c) {
  ProgramBuilder b(
      strformat("{}_{}_{}_{}", info(c.op).mnemonic, name(c.from), name(c.to), c.lanes));
  NodeRef out = b.param(c.to, true);
  std::vector<NodeRef> in;
  for (int i = 0; i < c.arity; ++i)
    in.push_back(b.param(c.op == Op::Where && i == 0 ? DType::Bool : c.from));
  NodeRef range = b.open(b.i32(kCount / c.lanes), Binding::Core);
  NodeRef index = b.alu(Op::Mul, {range, b.i32(c.lanes)});
  std::vector<NodeRef> operands;
  for (NodeRef p : in) operands.push_back(b.load(p, index, c.lanes));
  b.store(out, index, b.emit(c.op, c.to, operands, {}, c.lanes));
  b.close(range);
  return b.build();
}

inline std::vector<Case> all_cases(const Target& target, std::initializer_list<int> widths) {
  std::vector<Case> cases;
  for (int lanes : widths) {
    for (const OpInfo& row : kOps) {
      if (!is_alu(row.op) && row.op != Op::CDiv && row.op != Op::CMod) continue;
      // dot_products_test.cpp, lookups_test.cpp
      if (has_trait(row.op, kWords) || has_trait(row.op, kTable)) continue;
      for (DType d : kData) {
        if (!target.native(row.op, d)) continue;
        if (row.op == Op::Cast || row.op == Op::Bitcast) {
          for (DType to : kData) {
            const bool bitcast = row.op == Op::Bitcast;
            if (bitcast && (bits(to) != bits(d) || is_bool(to) || is_bool(d))) continue;
            if (!(target.dtypes & dtype_bit(to))) continue;
            cases.push_back({row.op, d, to, 1, lanes});
          }
        } else {
          const DType to = has_trait(row.op, kBoolResult) ? DType::Bool : d;
          cases.push_back({row.op, d, to, row.arity, lanes});
        }
      }
    }
  }
  return cases;
}

}  // namespace weft::testing
