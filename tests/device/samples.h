// Six programs that between them use every form of a linear program but plain elementwise ops.
#pragma once

#include "tests/device/programs.h"

namespace weft::testing {

/// out[i] = a[i] + b[i], 16 lanes per item.
inline LinearProgram sample_add() {
  ProgramBuilder b("Add 16!");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32), y = b.param(DType::F32);
  NodeRef r = b.open(b.i32(64), Binding::Core);
  NodeRef i = b.alu(Op::Mul, {r, b.i32(16)});
  b.store(out, i, b.alu(Op::Add, {b.load(x, i, 16), b.load(y, i, 16)}));
  b.close(r);
  return b.build();
}

/// out[0] = sum of x[0..n), n a variable.
inline LinearProgram sample_sum() {
  ProgramBuilder b("sum");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32);
  NodeRef n = b.variable("n", 0, 4096);
  NodeRef acc = b.emit(Op::Acc, DType::F32, {b.constant(DType::F32, 0)}, {0});
  NodeRef r = b.open(n);
  NodeRef now = b.emit(Op::GetAcc, DType::F32, {acc}, {0});
  b.emit(Op::SetAcc, DType::Void, {acc, b.alu(Op::Add, {now, b.load(x, r)})});
  b.close(r);
  NodeRef total = b.emit(Op::GetAcc, DType::F32, {acc}, {1});
  b.store(out, b.i32(0), total);
  return b.build();
}

/// c[m, 8] = a[m, k] @ b[k, 8] on one vector accumulator per row, m = core range, k = 32.
inline LinearProgram sample_matmul() {
  ProgramBuilder b("matmul");
  NodeRef c = b.param(DType::F32, true), x = b.param(DType::F32), y = b.param(DType::F32);
  NodeRef m = b.open(b.i32(16), Binding::Core);
  NodeRef zero = b.constant(DType::F32, 0);
  NodeRef zeros = b.emit(Op::Splat, DType::F32, {zero}, {}, 8);
  NodeRef acc = b.emit(Op::Acc, DType::F32, {zeros}, {0}, 8);
  NodeRef k = b.open(b.i32(32));
  NodeRef row = b.alu(Op::Add, {b.alu(Op::Mul, {m, b.i32(32)}), k});
  NodeRef left = b.emit(Op::Splat, DType::F32, {b.load(x, row)}, {}, 8);
  NodeRef right = b.load(y, b.alu(Op::Mul, {k, b.i32(8)}), 8);
  NodeRef now = b.emit(Op::GetAcc, DType::F32, {acc}, {0}, 8);
  b.emit(Op::SetAcc, DType::Void, {acc, b.alu(Op::MulAcc, {left, right, now})});
  b.close(k);
  NodeRef total = b.emit(Op::GetAcc, DType::F32, {acc}, {1}, 8);
  b.store(c, b.alu(Op::Mul, {m, b.i32(8)}), total);
  b.close(m);
  return b.build();
}

/// out[i] = f16(2 * x[j]) where j = index[i] is inside [0, n), else f16 0; i64 indices.
inline LinearProgram sample_gather() {
  ProgramBuilder b("gather");
  NodeRef out = b.param(DType::F16, true), x = b.param(DType::BF16), index = b.param(DType::I64);
  NodeRef n = b.variable("n", 1, 4096);
  NodeRef n64 = b.emit(Op::Cast, DType::I64, {n});
  NodeRef r = b.open(b.i32(100), Binding::Core);
  NodeRef j = b.load(index, r);
  NodeRef low = b.alu(Op::Le, {b.constant(DType::I64, 0), j});
  NodeRef valid = b.alu(Op::And, {low, b.alu(Op::Lt, {j, n64})});
  NodeRef loaded = b.emit(Op::Cast, DType::F32, {b.load(x, j, 1, valid)});
  NodeRef twice = b.alu(Op::Mul, {loaded, b.constant(DType::F32, 2)});
  b.store(out, r, b.emit(Op::Cast, DType::F16, {twice}));
  b.close(r);
  return b.build();
}

/// value[0], position[0] = maximum of x[0..64) and where it first is: 4 lanes, then across them.
inline LinearProgram sample_argmax() {
  ProgramBuilder b("argmax");
  NodeRef value = b.param(DType::F32, true), position = b.param(DType::I32, true);
  NodeRef x = b.param(DType::F32);
  NodeRef lowest = b.emit(Op::Splat, DType::F32, {b.constant(DType::F32, -INFINITY)}, {}, 4);
  NodeRef start = b.emit(Op::Splat, DType::I32, {b.i32(0)}, {}, 4);
  NodeRef best = b.emit(Op::Acc, DType::F32, {lowest}, {0}, 4);
  NodeRef where = b.emit(Op::Acc, DType::I32, {start}, {1}, 4);
  NodeRef iota = b.emit(Op::Vec, DType::I32, {b.i32(0), b.i32(1), b.i32(2), b.i32(3)}, {}, 4);
  NodeRef r = b.open(b.i32(16));
  NodeRef i = b.alu(Op::Mul, {r, b.i32(4)});
  NodeRef v = b.load(x, i, 4);
  NodeRef at = b.alu(Op::Add, {b.emit(Op::Splat, DType::I32, {i}, {}, 4), iota});
  NodeRef old = b.emit(Op::GetAcc, DType::F32, {best}, {0}, 4);
  NodeRef old_at = b.emit(Op::GetAcc, DType::I32, {where}, {0}, 4);
  NodeRef better = b.alu(Op::Lt, {old, v});
  b.emit(Op::SetAcc, DType::Void, {best, b.alu(Op::Where, {better, v, old})});
  b.emit(Op::SetAcc, DType::Void, {where, b.alu(Op::Where, {better, at, old_at})});
  b.close(r);
  NodeRef bests = b.emit(Op::GetAcc, DType::F32, {best}, {1}, 4);
  NodeRef ats = b.emit(Op::GetAcc, DType::I32, {where}, {1}, 4);
  NodeRef top = b.emit(Op::Lane, DType::F32, {bests}, {0});
  NodeRef top_at = b.emit(Op::Lane, DType::I32, {ats}, {0});
  for (int64_t k = 1; k < 4; ++k) {
    NodeRef other = b.emit(Op::Lane, DType::F32, {bests}, {k});
    NodeRef other_at = b.emit(Op::Lane, DType::I32, {ats}, {k});
    NodeRef equal = b.alu(Op::Eq, {other, top});
    NodeRef earlier = b.alu(Op::And, {equal, b.alu(Op::Lt, {other_at, top_at})});
    NodeRef wins = b.alu(Op::Or, {b.alu(Op::Lt, {top, other}), earlier});
    top = b.alu(Op::Where, {wins, other, top});
    top_at = b.alu(Op::Where, {wins, other_at, top_at});
  }
  b.store(value, b.i32(0), top);
  b.store(position, b.i32(0), top_at);
  return b.build();
}

/// table[index[i]] += x[i] (f16, u8 mask) in order, for i in [0, 200), skipping index < 0; last[0]
/// = the last index seen, a value used outside the loop that computes it.
inline LinearProgram sample_scatter() {
  ProgramBuilder b("scatter");
  NodeRef table = b.param(DType::F16, true), last = b.param(DType::I32, true);
  NodeRef index = b.param(DType::I32), x = b.param(DType::F16);
  NodeRef r = b.open(b.i32(200));
  NodeRef j = b.load(index, r);
  NodeRef inside = b.alu(Op::Le, {b.i32(0), j});
  NodeRef guard = b.emit(Op::If, DType::Void, {inside});
  NodeRef v = b.load(x, r);
  NodeRef small = b.alu(Op::Lt, {j, b.i32(50)});
  // What is there plus v: half floats are added as f32 and rounded once.
  NodeRef old = b.emit(Op::Cast, DType::F32, {b.load(table, j, 1, small)});
  NodeRef sum = b.alu(Op::Add, {old, b.emit(Op::Cast, DType::F32, {v})});
  b.store(table, j, b.emit(Op::Cast, DType::F16, {sum}), small);
  b.emit(Op::EndIf, DType::Void, {guard});
  b.close(r);
  b.store(last, b.i32(0), j);
  return b.build();
}

// ---- the same for machines whose values have no lanes

/// sample_add() for 1024 items.
inline LinearProgram scalar_add() {
  ProgramBuilder b("add");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32), y = b.param(DType::F32);
  NodeRef i = b.open(b.i32(1024), Binding::Core);
  b.store(out, i, b.alu(Op::Add, {b.load(x, i), b.load(y, i)}));
  b.close(i);
  return b.build();
}

/// sample_matmul() for 128 items, one for each element; `fused`: products are added in one
/// rounding.
inline LinearProgram scalar_matmul(bool fused) {
  ProgramBuilder b("matmul");
  NodeRef c = b.param(DType::F32, true), x = b.param(DType::F32), y = b.param(DType::F32);
  NodeRef i = b.open(b.i32(128), Binding::Core);
  NodeRef m = b.alu(Op::Shr, {i, b.i32(3)}), n = b.alu(Op::And, {i, b.i32(7)});
  NodeRef acc = b.emit(Op::Acc, DType::F32, {b.constant(DType::F32, 0)}, {0});
  NodeRef k = b.open(b.i32(32));
  NodeRef left = b.load(x, b.alu(Op::Add, {b.alu(Op::Mul, {m, b.i32(32)}), k}));
  NodeRef right = b.load(y, b.alu(Op::Add, {b.alu(Op::Mul, {k, b.i32(8)}), n}));
  NodeRef now = b.emit(Op::GetAcc, DType::F32, {acc}, {0});
  NodeRef sum = fused ? b.alu(Op::MulAcc, {left, right, now})
                      : b.alu(Op::Add, {now, b.alu(Op::Mul, {left, right})});
  b.emit(Op::SetAcc, DType::Void, {acc, sum});
  b.close(k);
  b.store(c, i, b.emit(Op::GetAcc, DType::F32, {acc}, {1}));
  b.close(i);
  return b.build();
}

/// sample_argmax().
inline LinearProgram scalar_argmax() {
  ProgramBuilder b("argmax");
  NodeRef value = b.param(DType::F32, true), position = b.param(DType::I32, true);
  NodeRef x = b.param(DType::F32);
  NodeRef best = b.emit(Op::Acc, DType::F32, {b.constant(DType::F32, -INFINITY)}, {0});
  NodeRef where = b.emit(Op::Acc, DType::I32, {b.i32(0)}, {1});
  NodeRef r = b.open(b.i32(64));
  NodeRef v = b.load(x, r);
  NodeRef old = b.emit(Op::GetAcc, DType::F32, {best}, {0});
  NodeRef old_at = b.emit(Op::GetAcc, DType::I32, {where}, {0});
  NodeRef better = b.alu(Op::Lt, {old, v});
  b.emit(Op::SetAcc, DType::Void, {best, b.alu(Op::Where, {better, v, old})});
  b.emit(Op::SetAcc, DType::Void, {where, b.alu(Op::Where, {better, r, old_at})});
  b.close(r);
  b.store(value, b.i32(0), b.emit(Op::GetAcc, DType::F32, {best}, {1}));
  b.store(position, b.i32(0), b.emit(Op::GetAcc, DType::I32, {where}, {1}));
  return b.build();
}

inline std::vector<LinearProgram> scalar_samples(const Target& target) {
  const bool fused = target.native(Op::MulAcc, DType::F32);
  return {scalar_add(),    sample_sum(),    scalar_matmul(fused),
          sample_gather(), scalar_argmax(), sample_scatter()};
}

/// out = x with each run of eight elements reversed, through local memory; two runs for each group,
/// as many groups as n.
inline LinearProgram group_reverse() {
  ProgramBuilder b("reverse");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32);
  NodeRef n = b.graph().variable("n", 0, 64);
  const auto id = [&](Binding binding, int64_t axis, int64_t size) {
    return b.emit(Op::WorkId, DType::I32, {b.i32(size)}, {static_cast<int64_t>(binding), axis});
  };
  NodeRef group = id(Binding::Grid, 0, 64), column = id(Binding::Group, 0, 8);
  NodeRef row = id(Binding::Group, 1, 2);
  NodeRef memory = b.emit(Op::Local, DType::F32, {b.graph().index(16)}, {0, 0});
  NodeRef eight = b.i32(8), first = b.alu(Op::Mul, {row, eight});
  NodeRef here = b.alu(Op::Add, {first, column}), sixteen = b.i32(16);
  NodeRef at = b.alu(Op::Add, {b.alu(Op::Mul, {group, sixteen}), here});
  b.store(memory, here, b.load(x, at));
  b.emit(Op::Barrier, DType::Void, {}, {0, 0});
  NodeRef other = b.alu(Op::Add, {first, b.alu(Op::Add, {b.i32(7), b.alu(Op::Neg, {column})})});
  b.store(out, at, b.load(memory, other));
  LinearProgram program = b.build();
  program.launch = {{n, nullptr, nullptr}, {8, 2, 1}, true};
  program.variables = {n};
  return program;
}

/// out[g] = the sum of one run of x for each of the n groups of two waves: shuffles within them,
/// local memory across.
inline LinearProgram group_fold(int64_t wave = 32) {
  ProgramBuilder b("fold");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32);
  NodeRef n = b.graph().variable("n", 0, 64), items = b.i32(2 * wave), each = b.i32(wave);
  const auto id = [&](Binding binding) {
    return b.emit(Op::WorkId, DType::I32, {items}, {static_cast<int64_t>(binding), 0});
  };
  NodeRef group = id(Binding::Grid), item = id(Binding::Group);
  NodeRef memory = b.emit(Op::Local, DType::F32, {b.graph().index(2)}, {0, 0});
  const auto folded = [&](NodeRef sum, int64_t lanes) {
    for (int64_t mask = lanes / 2; mask > 0; mask /= 2)
      sum = b.alu(Op::Add, {sum, b.emit(Op::Shuffle, DType::F32, {sum}, {mask})});
    return sum;
  };
  NodeRef at = b.alu(Op::Add, {b.alu(Op::Mul, {group, items}), item});
  NodeRef mine = folded(b.load(x, at), wave), number = b.alu(Op::CDiv, {item, each});
  NodeRef first = b.alu(Op::Eq, {b.alu(Op::CMod, {item, each}), b.i32(0)});
  b.store(memory, number, mine, first);
  b.emit(Op::Barrier, DType::Void, {}, {0, 0});
  NodeRef all = folded(b.load(memory, b.alu(Op::CMod, {item, b.i32(2)})), 2);
  b.store(out, group, all, b.alu(Op::Eq, {item, b.i32(0)}));
  LinearProgram program = b.build();
  program.launch = {{n, nullptr, nullptr}, {2 * wave, 1, 1}, true};
  program.variables = {n};
  return program;
}

inline std::vector<LinearProgram> samples() {
  return {sample_add(),    sample_sum(),    sample_matmul(),
          sample_gather(), sample_argmax(), sample_scatter()};
}

}  // namespace weft::testing
