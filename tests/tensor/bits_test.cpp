// Several ops as one instruction (codegen/x86/patterns.cpp): rotations, and-not, shifts by
// constants, three-way logic, at every level of instructions, on numbers and on vectors.
#include <gtest/gtest.h>

#include "tests/support/compiler/isa_levels.h"
#include "weft/base/context.h"
#include "weft/weft.h"

namespace weft {
namespace {

template <class T>
std::vector<T> words(size_t count, uint64_t seed) {
  std::vector<T> out;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    out.push_back(static_cast<T>(seed >> 17));
  }
  return out;
}

template <class T, class F, class G>
void expect_words(size_t count, const char* what, const F& host, const G& device) {
  const std::vector<T> x = words<T>(count, 1), y = words<T>(count, 2), z = words<T>(count, 3);
  std::vector<T> wanted;
  for (size_t i = 0; i < count; ++i) wanted.push_back(static_cast<T>(host(x[i], y[i], z[i])));
  const auto n = static_cast<int64_t>(count);
  const Tensor got = device(Tensor::from(x, {n}), Tensor::from(y, {n}), Tensor::from(z, {n}));
  EXPECT_EQ(got.to_vector<T>(), wanted) << what << " of " << count << " words of " << sizeof(T);
}

template <class T>
void expect_patterns(size_t count) {
  constexpr int kWidth = 8 * sizeof(T);
  const auto all = [&](const char* what, const auto& f) { expect_words<T>(count, what, f, f); };
  for (const int by : {1, 3, kWidth / 2, kWidth - 1}) {
    all("rotation", [by](auto x, auto, auto) { return x << by | x >> (kWidth - by); });
    all("rotation, turned", [by](auto x, auto, auto) { return x >> (kWidth - by) ^ x << by; });
    all("no rotation", [by](auto x, auto y, auto) { return x << by | y >> (kWidth - by); });
    all("left", [by](auto x, auto, auto) { return x << by; });
    all("right", [by](auto x, auto, auto) { return x >> by; });
  }
  all("and not", [](auto x, auto y, auto) { return ~x & y; });
  all("and not, turned", [](auto x, auto y, auto) { return y & ~x; });
  all("chi", [](auto x, auto y, auto z) { return x ^ (~y & z); });
  all("xor of three", [](auto x, auto y, auto z) { return x ^ y ^ z; });
  all("xor of a product", [](auto x, auto y, auto z) { return x ^ (y & z) ^ ~z; });
}

TEST(Bits, OpsTogetherAreWhatTheyAreAlone) {
  for (const std::string& level : testing::isa_levels()) {
    SCOPED_TRACE(level);
    Options options = Options::from_environment();
    options.isa = level;
    options.dev = "CPU:X86";
    Context context(options);
    const ContextScope scope(context);
    for (const size_t count : {size_t{1}, size_t{5}, size_t{200}}) {
      expect_patterns<uint64_t>(count);
      expect_patterns<uint32_t>(count);
      expect_patterns<uint16_t>(count);
      expect_patterns<int64_t>(count);
      expect_patterns<int32_t>(count);
    }
  }
}

}  // namespace
}  // namespace weft
