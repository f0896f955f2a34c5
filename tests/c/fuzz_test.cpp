// Random values for every operation: a status comes back, never a crash.
#include <random>

#include "tests/c/c_test.h"

namespace weft::c {
namespace {

class RandomValues {
 public:
  RandomValues(const Context& context, uint32_t seed) : random_(seed) {
    for (const auto& shape :
         {std::vector<int64_t>{}, {1}, {3}, {2, 3}, {3, 3}, {2, 3, 4}, {2, 3, 4, 4}, {0}, {2, 0}}) {
      const Tensor x = context.rand(shape);
      for (const char* dtype : {"f32", "f64", "f16", "i32", "u8", "i64", "bool", "u32"})
        tensors_.push_back(apply("cast", x * 3, dtype));
    }
    for (const Tensor& t : tensors_) handles_.push_back(t.get());
    dead_ = context.ones({1}).get();
  }

  size_t below(size_t n) { return random_() % n; }
  weft_value any() {
    switch (below(12)) {
      case 0: return weft_value{};
      case 1: return weft_bool(below(2) == 0);
      case 2:
      case 3: return weft_int(number());
      case 4: return weft_float(kFloats[below(std::size(kFloats))]);
      case 5: return weft_text(kTexts[below(std::size(kTexts))]);
      case 6: return weft_of_dtype(static_cast<int32_t>(below(24)) - 2);
      case 7: return ints();
      case 8: return weft_floats(kFloats, below(std::size(kFloats)));
      case 9: return weft_args(handles_.data() + below(handles_.size() - 4), below(4));
      default: return tensor();
    }
  }
  weft_value tensor() {
    return below(50) == 0 ? weft_arg(dead_) : weft_arg(handles_[below(handles_.size())]);
  }
  /// Mostly what the signature asks for: "axis: int = -1".
  weft_value fitting(const std::string& type) {
    if (below(5) == 0) return any();
    if (type.rfind("tensors", 0) == 0)
      return weft_args(handles_.data() + below(handles_.size() - 4), below(4));
    if (type.rfind("tensor", 0) == 0) return tensor();
    if (type.rfind("ints", 0) == 0) return ints();
    if (type.rfind("int", 0) == 0) return weft_int(number());
    if (type.rfind("float", 0) == 0) return weft_float(kFloats[below(std::size(kFloats))]);
    if (type.rfind("bool", 0) == 0) return weft_bool(below(2) == 0);
    return any();
  }

 private:
  static constexpr double kFloats[] = {0, 1, -1, 0.5, 3, -0.0, 1e300, INFINITY, NAN};
  static constexpr const char* kTexts[] = {"",          "mean", "f32",       "0",
                                           "::-1, ...", "t",    "ij,jk->ik", "a b -> (a b)",
                                           "sum",       "CPU",  "sha3_256",  "1:2:0"};

  int64_t number() {
    return below(30) == 0 ? kExtremes[below(std::size(kExtremes))]
                          : static_cast<int64_t>(below(9)) - 3;
  }
  weft_value ints() {
    const size_t count = below(5);
    for (size_t i = 0; i < count; ++i) numbers_[next_ + i] = number();
    const weft_value v = weft_ints(numbers_ + next_, count);
    next_ = (next_ + 5) % 100;
    return v;
  }

  static constexpr int64_t kExtremes[] = {INT64_MAX, INT64_MIN, -1000000, 100000};
  std::mt19937 random_;
  std::vector<Tensor> tensors_;
  std::vector<weft_tensor> handles_;
  weft_tensor dead_ = nullptr;
  int64_t numbers_[105] = {};
  size_t next_ = 0;
};

std::vector<std::string> types_of(const std::string& signature) {
  std::vector<std::string> types;
  for (size_t at = signature.find(": "); at != std::string::npos; at = signature.find(": ", at + 1))
    types.push_back(signature.substr(at + 2, 10));
  return types;
}

/// The operation on some values; what it gives is looked at and let go.
weft_status call(const Context& context, RandomValues& random, const char* name,
                 const std::vector<std::string>& types) {
  std::vector<weft_value> values;
  const size_t count = random.below(4) == 0 ? random.below(types.size() + 2) : types.size();
  for (size_t i = 0; i < count; ++i)
    values.push_back(i < types.size() ? random.fitting(types[i]) : random.any());
  weft_tensor outs[64] = {};
  size_t made = 0;
  const weft_status status =
      weft_apply(context.get(), name, values.data(), values.size(), outs, 64, &made);
  if (status != WEFT_OK) return status;
  for (size_t i = 0; i < made; ++i) {
    const Tensor x(outs[i]);
    size_t rank = 0;
    EXPECT_EQ(weft_tensor_rank(x.get(), &rank), WEFT_OK);
    int64_t sizes[64], numel = 1;
    if (weft_tensor_shape(x.get(), sizes, 64, &rank) != WEFT_OK) continue;
    for (size_t axis = 0; axis < rank; ++axis)
      numel = sizes[axis] < 1000 ? std::min<int64_t>(numel * sizes[axis], 1000) : 1000;
    // Running everything would compile thousands of kernels.
    if (numel < 1000 && random.below(40) == 0) weft_realize(outs + i, 1);
  }
  return status;
}

void call_everything(uint32_t seed, int rounds) {
  const Context context({"WEFT_DEV=CPU:INTERP", "WEFT_MEMORY_CAP=256M"});
  RandomValues random(context, seed);
  size_t ok = 0, calls = 0;
  for (size_t i = 0; i < weft_op_count(); ++i) {
    weft_op_info info = WEFT_STRUCT(weft_op_info);
    ASSERT_EQ(weft_describe_op(i, &info), WEFT_OK);
    const std::vector<std::string> types = types_of(info.signature);
    for (int round = 0; round < rounds; ++round, ++calls) {
      const weft_status status = call(context, random, info.name, types);
      ok += status == WEFT_OK;
      EXPECT_NE(status, WEFT_ERROR_INTERNAL) << info.name << ": " << last_error().text;
    }
  }
  EXPECT_GT(ok, calls / 20);  // the values are not all nonsense
}

TEST(CFuzz, AnyValuesGiveAStatus) { call_everything(1, 40); }
TEST(CFuzz, SlowManyValues) {
  for (uint32_t seed = 2; seed < 8; ++seed) call_everything(seed, 300);
}

}  // namespace
}  // namespace weft::c
