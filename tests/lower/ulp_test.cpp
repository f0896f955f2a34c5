// exp2, log2, sin and tan as kernels compute them, against long double: ulps over the whole range,
// and the special values.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/lower/kernels.h"
#include "weft/graph/node_map.h"

namespace weft::test {
namespace {

/// Runs the body of a scalar elementwise program on one value, with registers of 64 bits: fast
/// enough for millions. Loops inside of it have one iteration or none.
class ScalarMachine {
 public:
  explicit ScalarMachine(const LinearProgram& p) {
    for (NodeRef n : p.code) {
      const bool outer = n->op == Op::Range ? n->src(0)->op == Op::Const
                                            : n->op == Op::EndRange && !slots_.contains(n->src(0));
      if (outer || n->op == Op::Param) continue;
      if (n->op == Op::Store) {
        result_ = slots_.at(n->src(2));
        continue;
      }
      Step s{n->op, n->dtype, n->nsrc && n->op != Op::Load ? n->src(0)->dtype : n->dtype,
             0,     {},       code_.size()};
      if (n->op == Op::Const) s.constant = pattern(const_value(n));
      if (n->op != Op::Load && n->op != Op::Const)
        for (size_t i = 0; i < n->nsrc; ++i)
          s.src[i] = slots_.contains(n->src(i)) ? slots_.at(n->src(i)) : 0;
      slots_[n] = code_.size();
      code_.push_back(s);
    }
    for (const Step& s : code_)  // a loop's first step knows its last
      if (s.op == Op::EndRange) code_[s.src[0]].src[1] = s.slot;
    registers_.resize(code_.size());
  }

  uint64_t run(uint64_t x) {
    for (size_t i = 0; i < code_.size(); ++i) {
      const Step& s = code_[i];
      if (s.op == Op::Range) {
        EXPECT_LE(registers_[s.src[0]], 1u);
        if (registers_[s.src[0]] == 0) i = s.src[1];
      } else if (s.op == Op::SetAcc) {
        registers_[s.src[0]] = registers_[s.src[1]];
      } else {
        registers_[s.slot] = step(s, x);
      }
    }
    return registers_[result_];
  }
  size_t size() const { return code_.size(); }

 private:
  struct Step {
    Op op;
    DType dtype, from;
    uint64_t constant;
    size_t src[3];
    size_t slot;
  };

  static uint64_t pattern(Value v) {
    uint64_t bits = 0;
    v.store(&bits);
    return bits;
  }
  template <class T>
  static T as(uint64_t x) {
    T t;
    std::memcpy(&t, &x, sizeof t);
    return t;
  }
  template <class T>
  static uint64_t bits_of(T t) {
    uint64_t x = 0;
    std::memcpy(&x, &t, sizeof t);
    return x;
  }

  template <class T>
  uint64_t floats(const Step& s, T a, T b, T c) const {
    switch (s.op) {
      case Op::Neg: return bits_of<T>(-a);
      case Op::Add: return bits_of<T>(a + b);
      case Op::Mul: return bits_of<T>(a * b);
      case Op::Div: return bits_of<T>(a / b);
      case Op::MulAcc: return bits_of<T>(std::fma(a, b, c));
      case Op::Lt: return a < b;
      case Op::Le: return a <= b;
      case Op::Eq: return a == b;
      case Op::Ne: return a != b;
      default: break;
    }
    ADD_FAILURE() << "no float " << info(s.op).name;
    return 0;
  }
  template <class T>
  uint64_t ints(const Step& s, T a, T b) const {
    using U = std::make_unsigned_t<T>;
    switch (s.op) {
      case Op::Neg: return bits_of<T>(static_cast<T>(U{0} - static_cast<U>(a)));
      case Op::Add: return bits_of<T>(static_cast<T>(static_cast<U>(a) + static_cast<U>(b)));
      case Op::Mul: return bits_of<T>(static_cast<T>(static_cast<U>(a) * static_cast<U>(b)));
      case Op::And: return bits_of<T>(a & b);
      case Op::Or: return bits_of<T>(a | b);
      case Op::Xor: return bits_of<T>(a ^ b);
      case Op::Max: return bits_of<T>(a < b ? b : a);
      case Op::Shl: return bits_of<T>(static_cast<T>(static_cast<U>(a) << b));
      case Op::Shr: return bits_of<T>(a >> b);
      case Op::Lt: return a < b;
      case Op::Le: return a <= b;
      case Op::Eq: return a == b;
      case Op::Ne: return a != b;
      default: break;
    }
    ADD_FAILURE() << "no integer " << info(s.op).name;
    return 0;
  }
  template <class From>
  static uint64_t cast(DType to, From x) {
    switch (to) {
      case DType::I32: return bits_of(static_cast<int32_t>(x));
      case DType::I64: return bits_of(static_cast<int64_t>(x));
      case DType::U64: return bits_of(static_cast<uint64_t>(x));
      case DType::F32: return bits_of(static_cast<float>(x));
      default: return bits_of(static_cast<double>(x));
    }
  }

  uint64_t step(const Step& s, uint64_t x) const {
    const uint64_t a = registers_[s.src[0]], b = registers_[s.src[1]], c = registers_[s.src[2]];
    switch (s.op) {
      case Op::Load: return x;
      case Op::Const: return s.constant;
      case Op::Where: return a ? b : c;
      case Op::Bitcast:
      case Op::Acc:
      case Op::GetAcc: return a;
      case Op::EndRange: return 0;
      default: break;
    }
    const bool is_cast = s.op == Op::Cast;
    switch (s.from) {
      case DType::F32:
        return is_cast ? cast(s.dtype, as<float>(a))
                       : floats(s, as<float>(a), as<float>(b), as<float>(c));
      case DType::F64:
        return is_cast ? cast(s.dtype, as<double>(a))
                       : floats(s, as<double>(a), as<double>(b), as<double>(c));
      case DType::I32:
        return is_cast ? cast(s.dtype, as<int32_t>(a)) : ints(s, as<int32_t>(a), as<int32_t>(b));
      case DType::U64: return is_cast ? cast(s.dtype, a) : ints(s, a, b);
      case DType::Bool:
        if (is_cast) return a;
        return s.op == Op::Not ? !a : s.op == Op::And ? a & b : s.op == Op::Ne ? a ^ b : a | b;
      default:
        return is_cast ? cast(s.dtype, as<int64_t>(a)) : ints(s, as<int64_t>(a), as<int64_t>(b));
    }
  }

  std::vector<Step> code_;
  std::vector<uint64_t> registers_;
  NodeMap<size_t> slots_;
  size_t result_ = 0;
};

ScalarMachine machine(Op op, DType d, bool fma, bool f64 = true) {
  KernelBuilder k;
  NodeRef i = k.range(8, 0);
  k.store(k.param(1, d, 8), i, k.g.alu(op, {k.load(k.param(0, d, 8), i)}));
  Target target = make_target("c", CpuFeatures::detect(), 1);
  target.fma = fma;
  if (!f64) target.dtypes &= ~dtype_bit(DType::F64);
  const Kernel kernel = k.kernel();
  LinearProgram p = lower_kernel(kernel, target);
  verify_program(p, "lower");
  return ScalarMachine(p);
}

long double exact(Op op, long double x) {
  switch (op) {
    case Op::Exp2: return exp2l(x);
    case Op::Log2: return log2l(x);
    case Op::Sin: return sinl(x);
    case Op::Cos: return cosl(x);
    default: return tanl(x);
  }
}

template <class T>
double ulps(T got, long double want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(got) || std::isnan(rounded))
    return std::isnan(got) && std::isnan(rounded) ? 0 : 1e30;
  if (std::isinf(got) || std::isinf(rounded))
    return got == rounded ? 0 : std::nextafter(rounded, got) == got ? 1 : 1e30;
  if (got == rounded && want == static_cast<long double>(rounded)) return 0;
  int e = 0;
  std::frexp(rounded, &e);
  const int digits = std::numeric_limits<T>::digits, lowest = std::numeric_limits<T>::min_exponent;
  const long double ulp = std::ldexp(1.0L, std::max(e, lowest) - digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / ulp);
}

struct Worst {
  double ulps = 0;
  double at = 0;
};

template <class T, class Bits>
Worst worst_over(Op op, bool fma, uint64_t first, uint64_t count, uint64_t step, bool f64 = true) {
  ScalarMachine m = machine(op, sizeof(T) == 4 ? DType::F32 : DType::F64, fma, f64);
  Worst worst;
  for (uint64_t i = 0; i < count; ++i) {
    const auto bits = static_cast<Bits>(first + i * step);
    const T x = std::bit_cast<T>(bits), got = std::bit_cast<T>(static_cast<Bits>(m.run(bits)));
    const double u = ulps(got, exact(op, static_cast<long double>(x)));
    if (u > worst.ulps) worst = {u, static_cast<double>(x)};
  }
  return worst;
}

constexpr Op kFunctions[] = {Op::Exp2, Op::Log2, Op::Sin, Op::Cos, Op::Tan};

bool has_reduction(Op op) { return op == Op::Sin || op == Op::Cos || op == Op::Tan; }

TEST(LowerUlp, F32WholeRange) {
  for (Op op : kFunctions)
    for (bool fma : {false, true}) {
      const Worst w =
          worst_over<float, uint32_t>(op, fma, 0, 200000, 21475);  // 2^32 / 200000, not even
      EXPECT_LE(w.ulps, 1.0) << info(op).name << " at " << w.at << (fma ? " with fma" : "");
    }
}

/// Machines without f64 reduce the argument of sin and tan in pairs of f32.
TEST(LowerUlp, F32WithoutF64) {
  const auto check = [](uint64_t first, uint64_t count, uint64_t step) {
    for (Op op : {Op::Sin, Op::Cos, Op::Tan}) {
      const Worst w = worst_over<float, uint32_t>(op, false, first, count, step, false);
      EXPECT_LE(w.ulps, op == Op::Tan ? 2.5 : 1.0) << info(op).name << " at " << w.at;
    }
  };
  check(0, 200000, 21475);
  for (const auto& [from, to] :
       {std::pair{0.4f, 7.0f}, {7.0f, 1e3f}, {1e6f, 1.1e6f}, {1e30f, 1e38f}}) {
    const uint64_t a = std::bit_cast<uint32_t>(from), b = std::bit_cast<uint32_t>(to);
    check(a, 60000, std::max<uint64_t>(1, (b - a) / 60000) | 1);
  }
}

/// Where errors are largest: around 1 for log2, one period of the reduction for exp2 and sin.
TEST(LowerUlp, F32WorstPlaces) {
  struct Place {
    Op op;
    float from, to;
  };
  for (const Place& p :
       {Place{Op::Exp2, 0.25f, 1.0f}, Place{Op::Exp2, -1.0f, -0.25f},
        Place{Op::Exp2, -150.f, -125.f}, Place{Op::Log2, 0.7f, 1.45f}, Place{Op::Log2, 1.45f, 3.0f},
        Place{Op::Sin, 0.5f, 7.0f}, Place{Op::Sin, 1e6f, 1.1e6f}, Place{Op::Sin, 1e30f, 1e38f},
        Place{Op::Cos, 0.5f, 7.0f}, Place{Op::Cos, 1e6f, 1.1e6f}, Place{Op::Cos, 1e30f, 1e38f},
        Place{Op::Tan, 0.5f, 7.0f}, Place{Op::Tan, 1e6f, 1.1e6f}, Place{Op::Tan, 1e30f, 1e38f}})
    for (bool fma : {false, true}) {
      uint64_t a = std::bit_cast<uint32_t>(p.from), b = std::bit_cast<uint32_t>(p.to);
      if (a > b) std::swap(a, b);
      const uint64_t step = std::max<uint64_t>(1, (b - a) / 60000) | 1;
      const Worst w = worst_over<float, uint32_t>(p.op, fma, a, (b - a) / step, step);
      EXPECT_LE(w.ulps, 1.0) << info(p.op).name << " at " << w.at << (fma ? " with fma" : "");
    }
}

TEST(LowerUlp, F64) {
  for (Op op : kFunctions)
    for (bool fma : {false, true}) {
      const double most = op == Op::Tan ? 2.0 : 1.0;
      const Worst w = worst_over<double, uint64_t>(op, fma, 0, 60000, 307445734561825ull);
      EXPECT_LE(w.ulps, most) << info(op).name << " at " << w.at << (fma ? " with fma" : "");
      // From 2^-4 to 2^12, where most values are.
      const Worst v =
          worst_over<double, uint64_t>(op, fma, 0x3fb0000000000000ull, 60000, 1200959900633ull);
      EXPECT_LE(v.ulps, most) << info(op).name << " at " << v.at << (fma ? " with fma" : "");
    }
}

TEST(LowerUlp, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  for (DType d : {DType::F16, DType::BF16, DType::F32, DType::F64})
    for (Op op : kFunctions) {
      std::vector<Value> x;
      for (double v :
           {0.0,  -0.0, inf,    -inf,    std::nan(""), 1.0,   -1.0,  2.0,   0.5,    4.0,
            -3.0, 10.0, -149.0, -1074.0, 1024.0,       128.0, 127.0, 1e-45, 5e-324, 1e-310})
        x.push_back(Value::of(d, v));
      KernelBuilder k;
      const auto n = static_cast<int64_t>(x.size());
      NodeRef i = k.range(n, 0);
      k.store(k.param(1, d, n), i, k.g.alu(op, {k.load(k.param(0, d, n), i)}));
      const Kernel kernel = k.kernel();
      const Buffers buffers = {x, zeros(d, n)};
      const Buffers got = run_program(lowered(kernel), buffers);
      for (size_t j = 0; j < x.size(); ++j) {
        const Value want = Value::of(
            d, static_cast<double>(exact(op, static_cast<long double>(x[j].as_double()))));
        if (has_reduction(op) && std::fabs(x[j].as_double()) >= 0.5)
          continue;  // rounded: measured above
        if (op == Op::Exp2 && x[j].as_double() != std::trunc(x[j].as_double()) &&
            std::fabs(x[j].as_double()) > 1e-3)
          continue;
        if (op == Op::Log2 && x[j].as_double() > 0 &&
            std::log2(x[j].as_double()) != std::trunc(std::log2(x[j].as_double())))
          continue;
        EXPECT_TRUE(same_value(got[1][j], want))
            << info(op).name << " " << name(d) << " of " << x[j].text() << ": " << got[1][j].text()
            << ", not " << want.text();
      }
    }
}

/// Every f32 where errors are largest, and a 257th of the others.
TEST(LowerUlp, SlowF32Densely) {
  struct Stretch {
    Op op;
    uint64_t first, last, step;
  };
  const Stretch kStretches[] = {
      {Op::Exp2, 0x3e800000, 0x3f800000, 1}, {Op::Exp2, 0xbe800000, 0xbf800000, 1},
      {Op::Exp2, 0, 0xffffffff, 257},        {Op::Log2, 0x3f000000, 0x40000000, 1},
      {Op::Log2, 0, 0x7fffffff, 257},        {Op::Sin, 0x3e000000, 0x41000000, 1},
      {Op::Sin, 0, 0x7fffffff, 257},         {Op::Cos, 0x3e000000, 0x41000000, 1},
      {Op::Cos, 0, 0x7fffffff, 257},         {Op::Tan, 0x3e000000, 0x41000000, 1},
      {Op::Tan, 0, 0x7fffffff, 257},
  };
  for (const Stretch& s : kStretches)
    for (bool fma : {false, true}) {
      const Worst w =
          worst_over<float, uint32_t>(s.op, fma, s.first, (s.last - s.first) / s.step + 1, s.step);
      EXPECT_LE(w.ulps, 1.0) << info(s.op).name << " at " << w.at << (fma ? " with fma" : "");
      RecordProperty(std::string(info(s.op).name) + (fma ? "_fma" : "") + std::to_string(s.first),
                     std::to_string(w.ulps));
    }
}

}  // namespace
}  // namespace weft::test
