// Laziness is never observable: random programs of views, writes through views and realizes equal
// NumPy's model of strided arrays, whatever is realized when.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>

#include "tests/support/device_here.h"
#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/dtype/value.h"
#include "weft/weft.h"

namespace weft {
namespace {

using Extents = std::vector<int64_t>;

template <class T>
std::string list(const std::vector<T>& numbers) {
  std::string out;
  for (const T n : numbers) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return out;
}

/// An array as NumPy sees it: shared memory, an offset and strides in bytes. Everything happens at
/// once.
struct Strided {
  std::shared_ptr<std::vector<uint8_t>> memory;
  DType dtype = DType::I32;
  int64_t offset = 0;
  Extents shape, strides;

  static Strided contiguous(Extents shape, const std::vector<int64_t>& elements,
                            DType dtype = DType::I32) {
    const int64_t width = bits(dtype) / 8;
    Strided a{std::make_shared<std::vector<uint8_t>>(elements.size() * static_cast<size_t>(width)),
              dtype,
              0,
              std::move(shape),
              {}};
    a.strides.assign(a.shape.size(), width);
    for (size_t i = a.shape.size(); i-- > 1;) a.strides[i - 1] = a.strides[i] * a.shape[i];
    a.write(elements);
    return a;
  }

  int64_t width() const { return bits(dtype) / 8; }
  int64_t count() const {
    return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  }

  uint8_t* place(int64_t position) const {
    int64_t at = offset;
    for (size_t i = shape.size(); i-- > 0; position /= shape[i])
      at += position % shape[i] * strides[i];
    return memory->data() + at;
  }
  std::vector<int64_t> elements() const {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < count(); ++i)
      out.push_back(Value::load(dtype, reinterpret_cast<const std::byte*>(place(i)))
                        .cast(DType::I64)
                        .as_int());
    return out;
  }
  void write(const std::vector<int64_t>& values) const {
    for (int64_t i = 0; i < count(); ++i)
      std::memcpy(place(i), &values[static_cast<size_t>(i)], static_cast<size_t>(width()));
  }

  /// NumPy's view(): with another width along a last axis that is dense; nothing where it is not.
  std::optional<Strided> seen_as(DType to) const {
    Strided v = *this;
    v.dtype = to;
    if (v.width() == width()) return v;
    const bool fills = shape.back() * width() % v.width() == 0;
    if (strides.back() != width() || !fills) return std::nullopt;
    v.shape.back() = shape.back() * width() / v.width();
    v.strides.back() = v.width();
    return v;
  }
  Strided slice(size_t axis, int64_t begin, int64_t size, int64_t step) const {
    Strided v = *this;
    v.offset += begin * strides[axis];
    v.shape[axis] = size;
    v.strides[axis] *= step;
    return v;
  }
  Strided permuted(const std::vector<size_t>& axes) const {
    Strided v = *this;
    for (size_t i = 0; i < axes.size(); ++i) {
      v.shape[i] = shape[axes[i]];
      v.strides[i] = strides[axes[i]];
    }
    return v;
  }
  /// A view where the axes that merge lie densely in each other, else a copy: NumPy's rule.
  Strided reshaped(const Extents& to) const {
    Extents from_shape, from_strides;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 1) continue;
      const bool merges = !from_shape.empty() && from_strides.back() == shape[i] * strides[i];
      if (merges) {
        from_shape.back() *= shape[i];
        from_strides.back() = strides[i];
      } else {
        from_shape.push_back(shape[i]);
        from_strides.push_back(strides[i]);
      }
    }
    // Each dense run must split exactly into new axes.
    Strided v = *this;
    v.shape = to;
    v.strides.assign(to.size(), 0);
    size_t run = from_shape.size();
    int64_t left = 1, stride = 0;
    for (size_t i = to.size(); i-- > 0;) {
      if (to[i] == 1) continue;
      if (left == 1) {
        if (run == 0) return contiguous(to, elements(), dtype);
        --run;
        left = from_shape[run];
        stride = from_strides[run];
      }
      if (left % to[i] != 0) return contiguous(to, elements(), dtype);
      v.strides[i] = stride;
      stride *= to[i];
      left /= to[i];
    }
    return v;
  }
};

struct Pair {
  Tensor tensor;
  Strided model;
  std::string name;
};

class Program {
 public:
  explicit Program(uint64_t seed) : rng_(seed) {}

  void run(int steps) {
    fresh();
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) step();
    for (const Pair& p : pool_) compare(p);
  }
  const std::string& text() const { return text_; }

 private:
  int64_t pick(int64_t below) { return std::uniform_int_distribution<int64_t>(0, below - 1)(rng_); }
  Pair& any() { return pool_[static_cast<size_t>(pick(static_cast<int64_t>(pool_.size())))]; }
  void note(const std::string& line) { text_ += line + "\n"; }
  /// Adds what `expression` says, in NumPy's words, to what later steps may use.
  void keep(const std::string& expression, Tensor t, Strided m) {
    if (pool_.size() >= 7) pool_.erase(pool_.begin() + pick(static_cast<int64_t>(pool_.size())));
    pool_.push_back({std::move(t), std::move(m), strformat("t{}", made_++)});
    note(strformat("{} = {}", pool_.back().name, expression));
  }

  void fresh() {
    Extents shape;
    for (int64_t rank = 1 + pick(3); rank > 0; --rank) shape.push_back(1 + pick(4));
    std::vector<int64_t> values(static_cast<size_t>(
        std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
    for (int64_t& v : values) v = pick(100);
    keep(strformat("np.array([{}], np.int32).reshape({})", list(values), list(shape)),
         Tensor::from(values, Dims(shape)).cast(DType::I32), Strided::contiguous(shape, values));
  }

  void step() {
    switch (pick(14)) {
      case 0: return fresh();
      case 1:
      case 2: return slice();
      case 3: return permute();
      case 4: return reshape();
      case 5:
      case 6: return write();
      case 7: return add_in_place();
      case 8: return combine();
      case 9: return realize_some();
      case 10: return detach();
      case 11:
      case 12: return bitcast();
      default: return compare(any());
    }
  }

  void slice() {
    const Pair p = any();
    const auto axis = static_cast<size_t>(pick(static_cast<int64_t>(p.model.shape.size())));
    const int64_t n = p.model.shape[axis], step = 1 + pick(2), begin = pick(n);
    const int64_t size = 1 + pick((n - begin + step - 1) / step);
    std::string text = p.name + "[";
    for (size_t i = 0; i < axis; ++i) text += ":, ";
    text += strformat("{}:{}:{}]", begin, begin + (size - 1) * step + 1, step);
    std::vector<Index> index;
    for (size_t i = 0; i < axis; ++i) index.push_back(Slice());
    index.push_back(Slice(Dim(begin), Dim(begin + (size - 1) * step + 1), step));
    Tensor view = p.tensor.index(index);
    Strided model = p.model.slice(axis, begin, size, step);
    if (pick(3) == 0) {
      text = strformat("np.flip({}, {})", text, axis);
      view = view.flip({static_cast<int64_t>(axis)});
      model = model.slice(axis, size - 1, size, -1);
    }
    keep(text, view, model);
  }

  void permute() {
    const Pair p = any();
    std::vector<size_t> axes(p.model.shape.size());
    std::iota(axes.begin(), axes.end(), size_t{0});
    std::shuffle(axes.begin(), axes.end(), rng_);
    keep(strformat("{}.transpose({})", p.name, list(axes)),
         p.tensor.permute(Axes(std::vector<int64_t>(axes.begin(), axes.end()))),
         p.model.permuted(axes));
  }

  void reshape() {
    const Pair p = any();
    Extents to;
    int64_t left = p.model.count();
    while (left > 1) {
      std::vector<int64_t> divisors;
      for (int64_t d = 2; d <= left; ++d)
        if (left % d == 0) divisors.push_back(d);
      to.push_back(divisors[static_cast<size_t>(pick(static_cast<int64_t>(divisors.size())))]);
      left /= to.back();
    }
    if (to.empty() || pick(4) == 0) to.push_back(1);
    keep(strformat("{}.reshape({})", p.name, list(to)), p.tensor.reshape(Dims(to)),
         p.model.reshaped(to));
  }

  void detach() {
    const Pair p = any();
    keep(p.name + ".view()", p.tensor.detach(), p.model);
  }

  void bitcast() {
    constexpr std::pair<DType, const char*> kDTypes[] = {
        {DType::I8, "i1"},  {DType::U8, "u1"},  {DType::I16, "i2"}, {DType::U16, "u2"},
        {DType::I32, "i4"}, {DType::U32, "u4"}, {DType::I64, "i8"}};
    const Pair p = any();
    const auto& [to, text] = kDTypes[pick(std::size(kDTypes))];
    if (const auto model = p.model.seen_as(to))
      keep(strformat("{}.view(\"{}\")", p.name, text), p.tensor.bitcast(to), *model);
  }

  const Pair* same_shape(const Strided& as) {
    std::vector<const Pair*> found;
    for (const Pair& p : pool_)
      if (p.model.shape == as.shape && p.model.dtype == as.dtype) found.push_back(&p);
    return found.empty() ? nullptr
                         : found[static_cast<size_t>(pick(static_cast<int64_t>(found.size())))];
  }

  void write() {
    Pair target = any();
    const Pair* source = same_shape(target.model);
    if (source && pick(3) != 0) {
      note(strformat("{}[...] = {}", target.name, source->name));
      const std::vector<int64_t> values = source->model.elements();
      target.tensor.assign(source->tensor);
      target.model.write(values);
    } else {
      const int64_t value = pick(100);
      note(strformat("{}[...] = {}", target.name, value));
      target.tensor.assign(value);
      target.model.write(std::vector<int64_t>(static_cast<size_t>(target.model.count()), value));
    }
  }

  void add_in_place() {
    Pair target = any();
    const Pair* source = same_shape(target.model);
    std::vector<int64_t> values = target.model.elements();
    note(strformat("{} += {}", target.name, source->name));
    const std::vector<int64_t> more = source->model.elements();
    target.tensor += source->tensor;
    for (size_t i = 0; i < values.size(); ++i) values[i] = wrapping(values[i], 1, more[i]);
    target.model.write(values);
  }

  void combine() {
    const Pair a = any();
    const Pair b = *same_shape(a.model);
    std::vector<int64_t> values = a.model.elements();
    const std::vector<int64_t> other = b.model.elements();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = wrapping(wrapping(0, 2, values[i]), -uint64_t{1}, other[i]);
    keep(strformat("{} * 2 - {}", a.name, b.name), a.tensor * 2 - b.tensor,
         Strided::contiguous(a.model.shape, values, a.model.dtype));
  }

  /// a + n b; memory keeps the bits that fit.
  static int64_t wrapping(int64_t a, uint64_t n, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + n * static_cast<uint64_t>(b));
  }

  void realize_some() {
    std::vector<Tensor> chosen;
    std::string text = "# realize";
    for (const Pair& p : pool_) {
      if (pick(2) != 0) continue;
      chosen.push_back(p.tensor);
      text += " " + p.name;
    }
    note(text);
    if (!chosen.empty()) realize(chosen);
  }

  void compare(const Pair& p) {
    note(strformat("print({}.ravel())", p.name));
    ASSERT_EQ(p.tensor.to_vector<int64_t>(), p.model.elements()) << text_;
  }

  std::mt19937_64 rng_;
  std::vector<Pair> pool_;
  std::string text_;  // as NumPy's statements
  int made_ = 0;
};

void run_programs(uint64_t first, uint64_t count) {
  Options options;
  options.dev = testing::device_here("CPU:INTERP");
  Context context(options);
  ContextScope scope(context);
  for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Program program(seed);
    ASSERT_NO_THROW(program.run(16)) << program.text();
  }
}

TEST(AliasFuzz, ProgramsOfViewsAndWritesEqualNumPysModel) { run_programs(0, 150); }
// Both are one computation; their memory must not be one.
TEST(AliasFuzz, OneValueInTwoShapesOnceHadOneMemory) {
  Tensor flat = Tensor::from(std::vector<int32_t>{1, 2, 3, 4}, {4}) * 1;
  Tensor square = Tensor::from(std::vector<int32_t>{1, 2, 3, 4}, {2, 2}) * 2;
  flat.assign(square.reshape({4}));
  realize({flat, square});
  square.assign(0);
  realize({square});
  EXPECT_EQ(flat.to_vector<int32_t>(), (std::vector<int32_t>{2, 4, 6, 8}));
}

// Two tensors that were one array go on with memories of their own, whoever is realized first.
TEST(AliasFuzz, WhatWasOneArrayOnceStayedOneMemory) {
  Tensor a = Tensor::from(std::vector<int32_t>{1}, {1});
  Tensor b = Tensor::from(std::vector<int32_t>{2}, {1});
  b.assign(a);
  b.assign(2);
  realize({b});
  b.assign(a);
  a.assign(3);
  b.assign(4);
  realize({b});
  realize({a});
  EXPECT_EQ(b.to_vector<int32_t>(), std::vector<int32_t>{4});
}

TEST(AliasFuzz, SlowManyProgramsEqualNumPysModel) { run_programs(1000, 100'000); }

}  // namespace
}  // namespace weft
