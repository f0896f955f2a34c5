// Random custom kernels: nested ranges, reductions, masks, positions from data, stores of every
// kind, against the statements run as they are written, without a graph in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/compiler/isa_levels.h"
#include "tests/support/device_here.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/graph/print.h"
#include "weft/graph/tuple.h"
#include "weft/tensor/custom_kernel.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

constexpr int64_t kLength = 12;  // of every input and output
constexpr Fold kFolds[] = {Fold::Set, Fold::Add, Fold::Mul, Fold::Max, Fold::Min};

int32_t wrapped(int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v)); }

int32_t folded(Fold fold, int64_t a, int64_t b) {
  switch (fold) {
    case Fold::Add: return wrapped(a + b);
    case Fold::Mul: return wrapped(a * b);
    case Fold::Max: return wrapped(std::max(a, b));
    case Fold::Min: return wrapped(std::min(a, b));
    default: return wrapped(b);
  }
}

int32_t identity(Fold fold) {
  if (fold == Fold::Max) return INT32_MIN;
  if (fold == Fold::Min) return INT32_MAX;
  return fold == Fold::Mul ? 1 : 0;
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/// What is written: loop arithmetic (no width, never far from 0), or i32 data.
struct Term {
  enum Kind { kRange, kNumber, kAdd, kSub, kTimes, kDiv, kMod, kLess, kWhere, kLoad, kData, kFold };
  Kind kind;
  bool data = false;   ///< i32, else a loop's
  int64_t number = 0;  ///< kRange: which; kNumber: itself; kTimes, kDiv, kMod: by; kLoad: input
  Fold fold = Fold::Set;
  std::vector<int> over;  ///< kFold: ranges
  std::vector<Term> of;
};

struct Statement {
  Term at, value, when;
  bool masked;
  Fold combine;
  size_t output;
};

struct Program {
  std::vector<int64_t> sizes;  // of the ranges
  std::vector<std::vector<int32_t>> inputs;
  std::vector<Statement> statements;
  size_t outputs = 1;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Program run() {
    for (int k = 0; k < 2; ++k) {
      auto& values = p_.inputs.emplace_back(kLength);
      for (int32_t& v : values) v = static_cast<int32_t>(random_.between(-9, 9));
    }
    p_.outputs = static_cast<size_t>(random_.between(1, 2));
    for (int64_t n = random_.between(1, 3); n > 0; --n) open_.push_back(new_range());
    for (size_t k = 0; k < p_.outputs; ++k) add_statement(k);
    if (random_.chance(40)) add_statement(static_cast<size_t>(random_.below(2)) % p_.outputs);
    return std::move(p_);
  }

 private:
  int new_range() {
    p_.sizes.push_back(random_.chance(4) ? 0 : random_.between(1, 9));
    return static_cast<int>(p_.sizes.size()) - 1;
  }

  void add_statement(size_t output) {
    Statement s{index(3), value(3), less(), random_.chance(40), random_.pick(kFolds), output};
    if (random_.chance(30))
      s.at = {Term::kNumber, false, random_.below(kLength), Fold::Set, {}, {}};
    p_.statements.push_back(std::move(s));
  }

  Term index(int depth) {
    const Term leaf = random_.chance(75)
                          ? Term{Term::kRange, false, random_.pick(open_), {}, {}, {}}
                          : Term{Term::kNumber, false, random_.below(6), {}, {}, {}};
    if (depth == 0 || random_.chance(30)) return leaf;
    switch (random_.below(7)) {
      case 0:
      case 1: return {Term::kAdd, false, 0, {}, {}, {index(depth - 1), index(depth - 1)}};
      case 2: return {Term::kSub, false, 0, {}, {}, {index(depth - 1), index(depth - 1)}};
      case 3: return {Term::kTimes, false, random_.between(-1, 3), {}, {}, {index(depth - 1)}};
      case 4: return {Term::kDiv, false, random_.between(1, 9), {}, {}, {index(depth - 1)}};
      case 5: return {Term::kMod, false, random_.between(1, 9), {}, {}, {index(depth - 1)}};
      default: return {Term::kData, false, kLength, {}, {}, {value(depth - 1)}};
    }
  }
  /// A loop's comparison or one of data.
  Term less() {
    if (random_.chance(30)) return {Term::kLess, true, 0, {}, {}, {value(1), value(1)}};
    return {Term::kLess, false, 0, {}, {}, {index(2), index(1)}};
  }

  Term value(int depth) {
    if (depth == 0 || random_.chance(20)) {
      if (random_.chance(25)) return {Term::kNumber, true, random_.between(-3, 3), {}, {}, {}};
      return {Term::kLoad, true, random_.below(2), {}, {}, {index(depth)}};
    }
    switch (random_.below(6)) {
      case 0: return {Term::kAdd, true, 0, {}, {}, {value(depth - 1), value(depth - 1)}};
      case 1: return {Term::kSub, true, 0, {}, {}, {value(depth - 1), value(depth - 1)}};
      case 2: return {Term::kTimes, true, random_.between(-1, 2), {}, {}, {value(depth - 1)}};
      case 3: return {Term::kWhere, true, 0, {}, {}, {less(), value(depth - 1), value(depth - 1)}};
      default: return fold(depth);
    }
  }
  Term fold(int depth) {
    Term t{Term::kFold, true, 0, kFolds[random_.between(1, 4)], {}, {}};
    for (int64_t n = random_.between(1, 2); n > 0; --n) t.over.push_back(new_range());
    open_.insert(open_.end(), t.over.begin(), t.over.end());
    t.of.push_back(value(depth - 1));
    open_.resize(open_.size() - t.over.size());
    return t;
  }

  Random random_;
  Program p_;
  std::vector<int> open_;
};

// ---- the statements, run

/// The ranges a term is written with and does not close.
void collect(const Term& t, std::vector<int>& ranges) {
  std::vector<int> inside;
  for (const Term& s : t.of) collect(s, inside);
  if (t.kind == Term::kRange) inside.push_back(static_cast<int>(t.number));
  for (const int r : inside)
    if (std::ranges::find(t.over, r) == t.over.end() &&
        std::ranges::find(ranges, r) == ranges.end())
      ranges.push_back(r);
}

class Run {
 public:
  explicit Run(const Program& p) : p_(p), at_(p.sizes.size()) {}

  std::vector<std::vector<int32_t>> outputs() {
    std::vector<std::vector<int32_t>> out(p_.outputs, std::vector<int32_t>(kLength));
    for (const Statement& s : p_.statements) {
      std::vector<int> ranges;
      collect(s.at, ranges), collect(s.value, ranges);
      if (s.masked) collect(s.when, ranges);
      std::ranges::sort(ranges);
      each(ranges, 0, [&] {
        const int64_t at = value(s.at);
        if ((s.masked && !value(s.when)) || at < 0 || at >= kLength) return;
        int32_t& to = out[s.output][static_cast<size_t>(at)];
        to = folded(s.combine, to, value(s.value));
      });
    }
    return out;
  }

 private:
  template <class Visit>
  void each(const std::vector<int>& ranges, size_t from, const Visit& visit) {
    if (from == ranges.size()) return visit();
    const auto r = static_cast<size_t>(ranges[from]);
    for (at_[r] = 0; at_[r] < p_.sizes[r]; ++at_[r]) each(ranges, from + 1, visit);
  }

  int64_t value(const Term& t) {
    const auto a = [&](size_t k = 0) { return value(t.of[k]); };
    const auto fit = [&](int64_t v) { return t.data ? wrapped(v) : v; };
    switch (t.kind) {
      case Term::kRange: return at_[static_cast<size_t>(t.number)];
      case Term::kNumber: return t.number;
      case Term::kAdd: return fit(a() + a(1));
      case Term::kSub: return fit(a() - a(1));
      case Term::kTimes: return fit(a() * t.number);
      case Term::kDiv: return floor_div(a(), t.number);
      case Term::kMod: return a() - floor_div(a(), t.number) * t.number;
      case Term::kLess: return a() < a(1);
      case Term::kWhere: return a() ? a(1) : a(2);
      case Term::kLoad: {
        const int64_t i = a();
        return i < 0 || i >= kLength
                   ? 0
                   : p_.inputs[static_cast<size_t>(t.number)][static_cast<size_t>(i)];
      }
      case Term::kData: return std::clamp<int64_t>(a(), 0, t.number - 1);
      case Term::kFold: break;
    }
    int32_t sum = identity(t.fold);
    each(t.over, 0, [&] { sum = folded(t.fold, sum, a()); });
    return sum;
  }

  const Program& p_;
  std::vector<int64_t> at_;
};

// ---- the same through KernelWriter

class Writer {
 public:
  Writer(const Program& p, KernelWriter& k) : k_(k) {
    for (const int64_t n : p.sizes) ranges_.push_back(k.range(n));
    for (const Statement& s : p.statements) {
      if (s.masked)
        k.store_if(number(s.when), s.output, {written(s.at)}, written(s.value), s.combine);
      else
        k.store(s.output, {written(s.at)}, written(s.value), s.combine);
    }
  }

 private:
  KernelNumber number(const Term& t) { return written(t).number; }
  KernelOperand written(const Term& t) {
    const auto a = [&](size_t k = 0) { return written(t.of[k]); };
    // Two literals meet in no kernel's number.
    const auto first = [&] { return k_.as(a(), t.data ? DType::I32 : DType::Index); };
    switch (t.kind) {
      case Term::kRange: return ranges_[static_cast<size_t>(t.number)];
      case Term::kNumber: return k_.as(t.number, t.data ? DType::I32 : DType::Index);
      case Term::kAdd: return first() + a(1);
      case Term::kSub: return first() - a(1);
      case Term::kTimes: return first() * t.number;
      case Term::kDiv: return first() / t.number;
      case Term::kMod: return first() % t.number;
      case Term::kLess: return first() < a(1);
      case Term::kWhere: return k_.where(number(t.of[0]), a(1), a(2));
      case Term::kLoad: return k_.load(static_cast<size_t>(t.number), {a()});
      case Term::kData: return k_.position(number(t.of[0]), t.number);
      case Term::kFold: break;
    }
    std::vector<KernelNumber> over;
    for (const int r : t.over) over.push_back(ranges_[static_cast<size_t>(r)]);
    return k_.reduce(t.fold, number(t.of[0]), over);
  }

  KernelWriter& k_;
  std::vector<KernelNumber> ranges_;
};

void check(uint64_t first, uint64_t last, const char* device, const std::string& isa_level = "") {
  Options options = Options::from_environment();
  options.dev = testing::device_here(device);
  if (!isa_level.empty()) options.isa = isa_level;
  Context context(options);
  const ContextScope scope(context);
  for (uint64_t seed = first; seed < last && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(strformat("{} {}, seed {}", device, isa_level, seed));
    const Program p = Generator(seed).run();
    const auto wanted = Run(p).outputs();
    try {
      Tensors inputs;
      for (const auto& values : p.inputs) inputs.push_back(Tensor::from(values, {kLength}));
      const std::vector<CustomOutput> outputs(p.outputs, {{kLength}, DType::I32});
      const Tensors got =
          custom_kernel("random", inputs, outputs, [&p](KernelWriter& k) { Writer(p, k); });
      const std::string text = print_graph(CustomParts(got[0].node()->src(0)).sink);
      for (size_t k = 0; k < p.outputs; ++k)
        EXPECT_EQ(got[k].to_vector<int32_t>(), wanted[k]) << "output " << k << "\n" << text;
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(RandomCustomKernel, DoesWhatItsStatementsSay) {
  check(0, 400, "CPU:INTERP");
  check(0, 10, "CPU:C");
  for (const std::string& level : testing::isa_levels()) check(0, 400, "CPU:X86", level);
}
TEST(RandomCustomKernel, SlowManyKernels) {
  check(400, 40'000, "CPU:INTERP");
  for (const std::string& level : testing::isa_levels()) check(400, 40'000, "CPU:X86", level);
}

}  // namespace
}  // namespace weft
