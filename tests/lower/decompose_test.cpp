// Every op that lowering takes apart, on values where it could go wrong, scalar and in lanes.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/lower/kernels.h"

namespace weft::test {
namespace {

std::vector<Value> interesting(DType d) {
  std::vector<Value> out;
  if (is_float(d)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (double x : {0.0,          0.25,
                     0.5,          1.0,
                     1.5,          2.0,
                     127.0,        127.5,
                     128.0,        129.0,
                     255.0,        255.9,
                     256.0,        300.0,
                     2049.0,       32767.5,
                     65504.0,      65519.0,
                     65520.0,      65535.5,
                     8388609.0,    2147483520.0,
                     2147483648.0, 4294967296.0,
                     0x1p53,       0x1.fffffffffffffp62,
                     0x1p63,       0x1p64,
                     3e38,         1e300,
                     1e-40,        0x1p-149,
                     5e-324,       1.00000001,
                     inf}) {
      out.push_back(Value::of(d, x));
      out.push_back(Value::of(d, -x));
    }
    out.push_back(Value::of(d, std::nan("")));
    return out;
  }
  for (int64_t x : {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 33, 63, 64, 100})
    for (int64_t sign : {1, -1}) out.push_back(Value::of(d, x * sign));
  for (int64_t x : {int64_t{65521}, int64_t{16777217}, int64_t{1} << 53 | 1,
                    (int64_t{1} << 60) + (int64_t{1} << 52) + 1})
    for (int64_t sign : {1, -1}) out.push_back(Value::of(d, x * sign));
  out.push_back(Value::of(d, int_min(d)));
  out.push_back(Value::of(d, int_min(d) + 1));
  out.push_back(Value::of(d, int_max(d)));
  out.push_back(Value::of(d, int_max(d) - 1));
  return out;
}

/// All pairs of interesting values through one kernel with and without lanes.
struct Pairs {
  std::vector<Value> a, b, c;
  explicit Pairs(DType da, DType db, DType dc) {
    const auto xs = interesting(da), ys = interesting(db), zs = interesting(dc);
    for (size_t i = 0; i < xs.size(); ++i)
      for (size_t j = 0; j < ys.size(); ++j) {
        a.push_back(xs[i]);
        b.push_back(ys[j]);
        c.push_back(zs[(i * 7 + j) % zs.size()]);
      }
    while (a.size() % 4 != 0) a.push_back(a[0]), b.push_back(b[0]), c.push_back(c[0]);
  }
};

void check(const std::string& what, DType out, const std::vector<std::vector<Value>>& operands,
           NodeRef (*build)(Graph&, std::span<const NodeRef>, const void*), const void* context,
           Zeros zeros_of_op = Zeros::Signed) {
  SCOPED_TRACE(what);
  const auto n = static_cast<int64_t>(operands[0].size());
  for (bool lanes : {false, true}) {
    KernelBuilder k;
    NodeRef i = k.range(n / 4, 0), v = k.range(4, 1, lanes ? Binding::Vector : Binding::Loop);
    NodeRef at = k.g.add(k.g.mul(i, k.index(4)), v);
    std::vector<NodeRef> loads;
    Buffers buffers;
    for (const auto& values : operands) {
      loads.push_back(
          k.load(k.param(static_cast<int64_t>(buffers.size()), values[0].dtype(), n), at));
      buffers.push_back(values);
    }
    k.store(k.param(static_cast<int64_t>(buffers.size()), out, n), at, build(k.g, loads, context));
    buffers.push_back(zeros(out, n));
    expect_same(k.kernel(), buffers, {}, zeros_of_op);
  }
}

struct OpCase {
  Op op;
  DType result;
};
NodeRef build_op(Graph& g, std::span<const NodeRef> src, const void* context) {
  const auto* c = static_cast<const OpCase*>(context);
  return g.make({c->op, c->result, src});
}

constexpr DType kInts[] = {DType::I8, DType::I16, DType::I32, DType::I64,
                           DType::U8, DType::U16, DType::U32, DType::U64};
constexpr DType kAll[] = {DType::Bool, DType::I8,  DType::I16, DType::I32, DType::I64,
                          DType::U8,   DType::U16, DType::U32, DType::U64, DType::F16,
                          DType::BF16, DType::F32, DType::F64};

TEST(LowerDecompose, BinaryOps) {
  for (DType d : kAll) {
    const Pairs p(d, d, d);
    for (const OpInfo& row : kOps) {
      const Op op = row.op;
      if (row.group != OpGroup::Binary || has_trait(op, kApproximate)) continue;
      if (has_trait(op, kFloatOnly) && !is_float(d)) continue;
      if (has_trait(op, kIntOnly) && is_float(d)) continue;
      const bool logic = op == Op::And || op == Op::Or || op == Op::Xor;
      if (has_trait(op, kIntOnly) && is_bool(d) && !logic) continue;
      const OpCase c{op, has_trait(op, kBoolResult) ? DType::Bool : d};
      check(std::string(info(op).name) + " " + std::string(name(d)), c.result, {p.a, p.b}, build_op,
            &c, op == Op::Max || op == Op::Min ? Zeros::Unsigned : Zeros::Signed);
    }
  }
}

TEST(LowerDecompose, UnaryOps) {
  for (DType d : kAll)
    for (const OpInfo& row : kOps) {
      const Op op = row.op;
      if (row.group != OpGroup::Unary || op == Op::Cast || op == Op::Bitcast || op == Op::ToIndex)
        continue;
      if (has_trait(op, kApproximate)) continue;  // ulp_test.cpp
      if (has_trait(op, kFloatOnly) && !is_float(d)) continue;
      if (has_trait(op, kIntOnly) && is_float(d)) continue;
      if (op == Op::Neg && is_bool(d)) continue;
      const OpCase c{op, d};
      std::vector<Value> x = interesting(d);
      while (x.size() % 4 != 0) x.push_back(x[0]);
      check(std::string(info(op).name) + " " + std::string(name(d)), d, {x}, build_op, &c);
    }
}

TEST(LowerDecompose, Casts) {
  for (DType from : kAll)
    for (DType to : kAll) {
      if (from == to) continue;
      const OpCase c{Op::Cast, to};
      std::vector<Value> x = interesting(from);
      while (x.size() % 4 != 0) x.push_back(x[0]);
      check(std::string(name(from)) + " to " + std::string(name(to)), to, {x}, build_op, &c);
    }
}

/// Halfway between neighbouring halves, and a little to each side, down to what only the source can
/// tell: rounded twice, some would go to the wrong one.
TEST(LowerDecompose, CastsToHalvesRoundOnce) {
  std::mt19937_64 random(3);
  for (DType to : {DType::F16, DType::BF16})
    for (DType from : {DType::I32, DType::U32, DType::I64, DType::U64, DType::F64}) {
      std::vector<Value> x;
      while (x.size() < 4096) {
        uint64_t raw = random() & 0x7fff;
        const double one = Value::load(to, &raw).as_double();
        raw = std::min<uint64_t>(raw + 1, 0x7fff);
        const double tie = one + (Value::load(to, &raw).as_double() - one) / 2;
        if (!std::isfinite(tie)) continue;
        if (from == DType::F64) {
          for (const double near : {tie, std::nextafter(tie, 0), std::nextafter(tie, INFINITY),
                                    tie * (1 + 0x1p-30), tie * (1 - 0x1p-40)})
            x.push_back(Value::of(from, random() % 2 ? near : -near));
          continue;
        }
        if (tie < 1 || tie >= std::ldexp(1.0, bits(from) - 1)) continue;
        for (const int64_t beside : {-1, 0, 1}) {
          const int64_t near = static_cast<int64_t>(tie) + beside;
          x.push_back(Value::of(from, is_unsigned(from) || random() % 2 ? near : -near));
        }
      }
      x.resize(4096);
      const OpCase c{Op::Cast, to};
      check(std::string(name(from)) + " to " + std::string(name(to)), to, {x}, build_op, &c);
    }
}

TEST(LowerDecompose, MulAcc) {
  for (DType d : {DType::I32, DType::U8, DType::F16, DType::F32}) {
    const Pairs p(d, d, d);
    const OpCase c{Op::MulAcc, d};
    check("mulacc " + std::string(name(d)), d, {p.a, p.b, p.c}, build_op, &c);
  }
}

// Words of small whole numbers: sums of their products are exact.
TEST(LowerDecompose, DotProducts) {
  std::vector<Value> words, whole, to_f32, to_i32;
  for (uint64_t i = 0; i < 64; ++i) {
    const uint64_t bits = i * 0x9E3779B97F4A7C15;
    words.push_back(Value::of(DType::U32, bits >> 32));
    const auto half = [&](int by) {
      return std::bit_cast<uint32_t>(static_cast<float>(bits >> by & 63) - 32) >> 16;
    };
    whole.push_back(Value::of(DType::U32, uint64_t{half(20) | half(40) << 16}));
    to_i32.push_back(Value::of(DType::I32, bits));
    to_f32.push_back(Value::of(DType::F32, static_cast<double>(i)));
  }
  std::vector<Value> others(words.rbegin(), words.rend()), wholes(whole.rbegin(), whole.rend());
  const OpCase dot4{Op::Dot4, DType::I32}, dot2{Op::Dot2, DType::F32};
  const OpCase dot2_of_i16{Op::Dot2I16, DType::I32};
  check("dot4", DType::I32, {words, others, to_i32}, build_op, &dot4);
  // Bytes that are known to be below 128, and the largest sums there are.
  const auto of_small = [](Graph& g, std::span<const NodeRef> src, const void*) {
    NodeRef mask = g.constant(Value::of(DType::U32, int64_t{0x7f7f7f7f}));
    NodeRef small = g.make(Op::And, DType::U32, {src[0], mask});
    return g.make(Op::Dot4, DType::I32, {small, src[1], src[2]});
  };
  check("dot4 of small bytes", DType::I32, {words, others, to_i32}, of_small, nullptr);
  const std::vector<Value> ones(8, Value::of(DType::U32, int64_t{0xffffffff})),
      least(8, Value::of(DType::U32, int64_t{0x80808080})), nothing(8, Value::of(DType::I32, 0));
  check("dot4 of extremes", DType::I32, {ones, least, nothing}, build_op, &dot4);
  check("dot4 of small extremes", DType::I32, {ones, least, nothing}, of_small, nullptr);
  check("dot2i16", DType::I32, {words, others, to_i32}, build_op, &dot2_of_i16);
  check("dot2", DType::F32, {whole, wholes, to_f32}, build_op, &dot2);
}

// Of tables that are constants, and of others.
TEST(LowerDecompose, BytesOfTables) {
  std::vector<std::vector<Value>> words(5);
  for (uint64_t i = 0; i < 64; ++i)
    for (size_t k = 0; k < words.size(); ++k)
      words[k].push_back(Value::of(DType::U32, (i * 5 + k + 1) * 0x9E3779B97F4A7C15 >> 32));
  const OpCase lookup{Op::Lookup4, DType::U32};
  check("lookup4", DType::U32, words, build_op, &lookup);
  const auto of_constants = [](Graph& g, std::span<const NodeRef> src, const void*) {
    std::vector<NodeRef> all{src[0]};
    for (const uint64_t word : {0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u})
      all.push_back(g.constant(Value::of(DType::U32, word)));
    return g.make({Op::Lookup4, DType::U32, all});
  };
  check("lookup4 of constants", DType::U32, {words[0]}, of_constants, nullptr);
}

struct ConstantCase {
  Op op;
  Value divisor;
};
NodeRef build_by_constant(Graph& g, std::span<const NodeRef> src, const void* context) {
  const auto* c = static_cast<const ConstantCase*>(context);
  return g.alu(c->op, {src[0], g.constant(c->divisor)});
}

TEST(LowerDecompose, DivisionByConstants) {
  for (DType d : kInts) {
    std::vector<Value> x = interesting(d);
    while (x.size() % 4 != 0) x.push_back(x[0]);
    for (int64_t by : {0, 1, -1, 2, -2, 3, -3, 5, 7, 8, 10, 16, 100, 127, -128})
      for (Op op : {Op::IDiv, Op::Mod}) {
        const ConstantCase c{op, Value::of(d, by)};
        check(std::string(info(op).name) + " " + std::string(name(d)) + " by " + c.divisor.text(),
              d, {x}, build_by_constant, &c);
      }
  }
}

constexpr int64_t kDivisors[] = {1,          3,   5,   7,     10,    11,     60,
                                 100,        127, 641, 32767, 65535, 65537,  1000003,
                                 2147483647, -3,  -7,  -10,   -127,  -32768, -1000003};

bool holds(DType d, int64_t number) {
  return number < 0 ? number >= int_min(d) : static_cast<uint64_t>(number) <= int_max(d);
}

/// All of 8 and 16 bits, and what is next to multiples of the divisor.
std::vector<Value> dividends(DType d, int64_t by) {
  std::vector<Value> out = interesting(d);
  if (bits(d) <= 16)
    for (int64_t x = int_min(d); x <= static_cast<int64_t>(int_max(d)); ++x)
      out.push_back(Value::of(d, x));
  std::mt19937_64 random(static_cast<uint64_t>(by));
  while (bits(d) > 16 && out.size() < 2000) {
    const uint64_t bits_of = random() >> (random() % 64);
    const auto multiple = static_cast<int64_t>(bits_of >> 1) / by * by;
    for (const int64_t beside : {-1, 0, 1})
      for (const int64_t sign : {-1, 1}) out.push_back(Value::of(d, sign * (multiple + beside)));
  }
  return out;
}

/// By constants they are multiplied with reciprocals, else divided as floats, or one by one.
void expect_quotients(DType d, int64_t by, Binding binding) {
  std::vector<Value> x = dividends(d, by);
  while (x.size() % 4 != 0) x.push_back(x[0]);
  const std::vector<Value> divisors(x.size(), Value::of(d, by));
  const auto n = static_cast<int64_t>(x.size());
  KernelBuilder k;
  NodeRef i = k.g.add(k.g.mul(k.range(n / 4, 0), k.index(4)), k.range(4, 1, binding));
  NodeRef a = k.load(k.param(0, d, n), i), b = k.load(k.param(1, d, n), i);
  NodeRef c = k.g.constant(Value::of(d, by));
  k.store(k.param(2, d, n), i, k.g.idiv(a, c));
  k.store(k.param(3, d, n), i, k.g.mod(a, c));
  k.store(k.param(4, d, n), i, k.g.idiv(a, b));
  k.store(k.param(5, d, n), i, k.g.mod(a, b));
  const LinearProgram p = lowered(k.kernel(), "x86");
  EXPECT_EQ(count(p, Op::CDiv), binding == Binding::Vector ? 0u : 1u);
  EXPECT_EQ(count(p, Op::CMod), 0u);
  const Buffers got =
      run_program(p, {x, divisors, zeros(d, n), zeros(d, n), zeros(d, n), zeros(d, n)});
  EXPECT_EQ(got[2], got[4]);
  EXPECT_EQ(got[3], got[5]);
  for (size_t j = 0; j < x.size(); ++j) {
    const int64_t v = x[j].as_int(), rest = v % by;
    const int64_t q = v / by - (rest != 0 && (rest < 0) != (by < 0));
    ASSERT_EQ(got[2][j].as_int(), q) << v;
    ASSERT_EQ(got[3][j].as_int(), v - q * by) << v;
  }
}

TEST(LowerDecompose, QuotientsOfNarrowIntegersOnX86) {
  for (DType d : {DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32})
    for (int64_t by : kDivisors) {
      if (!holds(d, by)) continue;
      SCOPED_TRACE(std::string(name(d)) + " by " + std::to_string(by));
      for (const Binding binding : {Binding::Vector, Binding::Loop})
        expect_quotients(d, by, binding);
    }
}

/// Indices and what else is known to be small.
TEST(LowerDecompose, QuotientsOfSmallWideIntegersOnX86) {
  for (int64_t by : {3, 7, 60, 1000003}) {
    KernelBuilder k;
    const int64_t n = 1 << 12, step = 1 << 18;
    NodeRef i = k.range(n, 0), x = k.g.cast(i, DType::I64);
    NodeRef far = k.g.mul(x, k.g.constant(Value::of(DType::I64, step)));
    NodeRef c = k.g.constant(Value::of(DType::I64, by));
    k.store(k.param(0, DType::I64, n), i, k.g.idiv(far, c));
    k.store(k.param(1, DType::I64, n), i, k.g.mod(far, c));
    const LinearProgram p = lowered(k.kernel(), "x86");
    EXPECT_EQ(count(p, Op::CDiv) + count(p, Op::CMod), 0u) << print_program(p);
    const Buffers got = run_program(p, {zeros(DType::I64, n), zeros(DType::I64, n)});
    for (int64_t j = 0; j < n; ++j) {
      ASSERT_EQ(got[0][static_cast<size_t>(j)].as_int(), j * step / by);
      ASSERT_EQ(got[1][static_cast<size_t>(j)].as_int(), j * step % by);
    }
  }
}

/// What docs/how_to_add/target.md asks of every target: no division but of floats, neither
/// rounding, nor max, nor fused multiply-add.
Target bare_target() {
  constexpr DTypeSet kEvery = ~DTypeSet{0};
  static constexpr NativeOp kLeast[] = {{Op::Add, kEvery},
                                        {Op::Mul, kEvery},
                                        {Op::Neg, kEvery},
                                        {Op::Not, kEvery},
                                        {Op::Lt, kEvery},
                                        {Op::Le, kEvery},
                                        {Op::Eq, kEvery},
                                        {Op::Ne, kEvery},
                                        {Op::And, kEvery},
                                        {Op::Or, kEvery},
                                        {Op::Xor, kEvery},
                                        {Op::Shl, kEvery},
                                        {Op::Shr, kEvery},
                                        {Op::Where, kEvery},
                                        {Op::Cast, kEvery},
                                        {Op::Bitcast, kEvery},
                                        {Op::Div, dtype_set({DType::F32, DType::F64})}};
  Target t = make_target("c", CpuFeatures{}, 1);
  t.native_ops = kLeast;
  t.fma = false;
  return t;
}

TEST(LowerDecompose, MultiplicationInsteadOfDivision) {
  const PassTrace checked(false);
  for (DType d : {DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32}) {
    const std::vector<Value> x = interesting(d);
    const auto n = static_cast<int64_t>(x.size());
    for (int64_t by : kDivisors) {
      if (!holds(d, by)) continue;
      KernelBuilder k;
      NodeRef i = k.range(n, 0), a = k.load(k.param(0, d, n), i),
              c = k.g.constant(Value::of(d, by));
      k.store(k.param(1, d, n), i, k.g.idiv(a, c));
      k.store(k.param(2, d, n), i, k.g.mod(a, c));
      const Kernel kernel = k.kernel();
      const LinearProgram p = lower_kernel(kernel, bare_target());
      EXPECT_EQ(count(p, Op::CDiv) + count(p, Op::CMod), 0u);
      const Buffers buffers = {x, zeros(d, n), zeros(d, n)};
      EXPECT_EQ(run_program(p, buffers), run_kernel(kernel.sink, buffers))
          << name(d) << " by " << by;
    }
  }
}

TEST(LowerDecompose, OnABareTarget) {
  const PassTrace checked(false);
  for (DType d : {DType::F32, DType::F64, DType::I16}) {
    const Pairs p(d, d, d);
    const auto n = static_cast<int64_t>(p.a.size());
    for (Op op : {Op::Max, Op::Min, Op::Trunc, Op::Rint, Op::MulAcc}) {
      if ((op == Op::Trunc || op == Op::Rint) && !is_float(d)) continue;
      KernelBuilder k;
      NodeRef i = k.range(n, 0);
      const NodeRef src[] = {k.load(k.param(0, d, n), i), k.load(k.param(1, d, n), i),
                             k.load(k.param(2, d, n), i)};
      const size_t arity = static_cast<size_t>(info(op).arity);
      k.store(k.param(3, d, n), i, k.g.make({op, d, {src, arity}}));
      const Kernel kernel = k.kernel();
      const LinearProgram program = lower_kernel(kernel, bare_target());
      EXPECT_EQ(count(program, op), 0u);
      const Buffers buffers = {p.a, p.b, p.c, zeros(d, n)};
      const Buffers got = run_program(program, buffers), want = run_kernel(kernel.sink, buffers);
      for (size_t j = 0; j < p.a.size(); ++j) {
        // Products of huge f64 and sums that cancel to below 2^-1022 are out of the error-free
        // transforms' reach.
        if (op == Op::MulAcc && d == DType::F64 &&
            (std::fabs(p.a[j].as_double()) > 1e200 || std::fabs(p.b[j].as_double()) > 1e200 ||
             std::fabs(p.a[j].as_double() * p.b[j].as_double()) < 1e-250))
          continue;
        const bool same =
            got[3][j] == want[3][j] || (got[3][j].is_nan() && want[3][j].is_nan()) ||
            (got[3][j].is_zero() && want[3][j].is_zero() && op != Op::Trunc && op != Op::Rint);
        ASSERT_TRUE(same) << info(op).name << " " << name(d) << " " << p.a[j].text() << " "
                          << p.b[j].text() << " " << p.c[j].text() << ": " << got[3][j].text()
                          << " not " << want[3][j].text();
      }
    }
  }
}

/// Everything but f64, which nothing is taken apart into: the promises of all passes are checked.
TEST(LowerDecompose, WithoutF64) {
  const PassTrace checked(false);
  const Target target = make_target("wgsl", CpuFeatures{}, 1);
  const auto lower = [&](Op op, DType from, DType to) {
    KernelBuilder k;
    NodeRef i = k.range(8, 0);
    std::vector<NodeRef> src;
    for (int64_t a = 0; a < info(op).arity; ++a)
      src.push_back(k.load(k.param(a, op == Op::Where && a == 0 ? DType::Bool : from, 8), i));
    k.store(k.param(info(op).arity, to, 8), i, k.g.make({op, to, src}));
    const LinearProgram program = lower_kernel(k.kernel(), target);
    for (NodeRef n : program.code)
      EXPECT_NE(n->dtype, DType::F64) << info(op).mnemonic << " " << name(from) << " " << name(to);
  };
  for (DType d : kAll) {
    if (d == DType::F64) continue;
    for (DType to : kAll)
      if (to != DType::F64 && to != d) lower(Op::Cast, d, to);
    for (const OpInfo& row : kOps) {
      const bool casts = row.op == Op::Cast || row.op == Op::Bitcast || row.op == Op::ToIndex;
      if (!is_alu(row.op) || row.group == OpGroup::Linear || casts) continue;
      if (has_trait(row.op, kWords) || has_trait(row.op, kTable)) continue;
      if (has_trait(row.op, kFloatOnly) && !is_float(d)) continue;
      if (has_trait(row.op, kIntOnly) && (is_float(d) || is_bool(d))) continue;
      if (row.op == Op::Neg && is_bool(d)) continue;
      lower(row.op, d, has_trait(row.op, kBoolResult) ? DType::Bool : d);
    }
  }
}

TEST(LowerDecompose, RemaindersDivideOnce) {
  for (DType d : {DType::F32, DType::F64}) {
    KernelBuilder k;
    NodeRef i = k.range(8, 0);
    const NodeRef src[] = {k.load(k.param(0, d, 8), i), k.load(k.param(1, d, 8), i)};
    k.store(k.param(2, d, 8), i, k.g.make({Op::Rem, d, src}));
    // In the loop over elements; in that of quotients with more digits, which others do not enter.
    int depth = 0, once = 0, rarely = 0;
    for (NodeRef n : lower_kernel(k.kernel(), bare_target()).code) {
      depth += n->op == Op::Range;
      depth -= n->op == Op::EndRange;
      if (n->op == Op::Div) ++(depth > 1 ? rarely : once);
    }
    EXPECT_EQ(once, 1) << name(d);
    EXPECT_GE(rarely, 1) << name(d);
  }
}

/// Random patterns, sums that cancel to their last bits, and results around the least normal
/// number.
TEST(LowerDecompose, MulAccWithoutF64) {
  std::mt19937_64 random(3);
  std::vector<Value> a, b, c;
  const auto take = [](double x) { return Value::of(DType::F32, x); };
  while (a.size() < 40000) {
    const uint64_t raw[] = {random(), random(), random()};
    for (size_t i = 0; i < 3; ++i)
      (i == 0 ? a : i == 1 ? b : c).push_back(Value::load(DType::F32, &raw[i]));
    const double x = std::ldexp(static_cast<double>(raw[0] >> 40), -24),
                 y = std::ldexp(static_cast<double>(raw[1] >> 40), -24);
    for (const int scale : {0, -60, -75}) {
      a.push_back(take(std::ldexp(x, scale)));
      b.push_back(take(std::ldexp(y, scale)));
      const double off = std::ldexp(static_cast<double>(raw[2] % 5) - 2.0, 2 * scale - 24);
      c.push_back(take(off - std::ldexp(x * y, 2 * scale)));
    }
  }
  const PassTrace checked(false);
  Target target = bare_target();
  target.dtypes &= ~dtype_bit(DType::F64);
  KernelBuilder k;
  const auto n = static_cast<int64_t>(a.size());
  NodeRef i = k.range(n, 0);
  const NodeRef src[] = {k.load(k.param(0, DType::F32, n), i), k.load(k.param(1, DType::F32, n), i),
                         k.load(k.param(2, DType::F32, n), i)};
  k.store(k.param(3, DType::F32, n), i, k.g.make({Op::MulAcc, DType::F32, src}));
  const LinearProgram program = lower_kernel(k.kernel(), target);
  for (NodeRef node : program.code) EXPECT_NE(node->dtype, DType::F64);
  const Buffers got = run_program(program, {a, b, c, zeros(DType::F32, n)});
  for (size_t j = 0; j < a.size(); ++j) {
    const auto of = [j](const std::vector<Value>& v) {
      return static_cast<float>(v[j].as_double());
    };
    const Value want = take(static_cast<double>(std::fma(of(a), of(b), of(c))));
    const bool same = got[3][j] == want || (got[3][j].is_nan() && want.is_nan());
    ASSERT_TRUE(same) << a[j].text() << " " << b[j].text() << " " << c[j].text() << ": "
                      << got[3][j].text() << " not " << want.text();
  }
}

TEST(LowerDecompose, BoundsElideGuards) {
  KernelBuilder k;
  NodeRef i = k.range(100, 0);
  NodeRef x = k.g.cast(i, DType::I32), seven = k.g.constant(Value::of(DType::I32, 7));
  k.store(k.param(0, DType::I32, 100), i, k.g.add(k.g.idiv(x, seven), k.g.mod(x, seven)));
  const auto p = expect_same(k.kernel(), {zeros(DType::I32, 100)});
  EXPECT_EQ(count(p, Op::Where), 0u) << print_program(p);
  EXPECT_EQ(count(p, Op::CDiv), 1u);
}

}  // namespace
}  // namespace weft::test
