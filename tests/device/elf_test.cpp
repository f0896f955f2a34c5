// The object loader: what compilers write runs; what they do not write is refused and never
// crashes.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tests/device/programs.h"
#include "weft/base/error.h"
#include "weft/device/compiler.h"
#include "weft/device/elf.h"

namespace weft {
namespace {

// Read-only tables, jump tables, written data, zeros, and calls of memset and memcpy.
constexpr const char* kText = R"(
static const int primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
static const int* const table[2] = {primes, primes + 8};
static int calls = 40;
static char zeros[5000];
struct big { char bytes[4000]; };
int table_at(int i, int j) { return table[i & 1][j & 7]; }
int count(void) { zeros[calls % 5000] = 1; return ++calls; }
int sum_zeros(void) { int s = 0; for (int i = 0; i < 5000; i++) s += zeros[i]; return s; }
void copy(struct big* to, const struct big* from) { *to = *from; }
void clear(struct big* to) { struct big z = {{0}}; *to = z; }
int pick(int x) {
  switch (x) {
    case 0: return 7; case 1: return x * 3 + 11; case 2: return x * x + 5; case 3: return 99;
    case 4: return -x; case 5: return 1 << x; case 6: return 1234; case 7: return x % 3;
    default: return -1;
  }
}
)";

std::string object_by(const char* cc, const char* text = kText) {
  Options options = testing::quiet_options();
  options.cc = cc;
  Context context(options);
  const auto compiler = find_c_compiler(context);
  const std::string texts[] = {text};
  return compile_c(context, *compiler, c_compiler_flags(CpuFeatures()), texts)[0];
}

std::shared_ptr<CodeObject> load(const std::string& object) {
  return CodeObject::load(std::as_bytes(std::span(object)));
}

template <class F>
F function(const CodeObject& code, const char* name) {
  void* address = code.function(name);
  if (address == nullptr) throw InternalError("test", name);
  return reinterpret_cast<F>(address);
}

class ElfBy : public ::testing::TestWithParam<const char*> {};

TEST_P(ElfBy, CodeAndDataWork) {
  const auto code = load(object_by(GetParam()));
  EXPECT_EQ(function<int (*)(int, int)>(*code, "table_at")(1, 2), 31);
  EXPECT_EQ(function<int (*)()>(*code, "count")(), 41);
  EXPECT_EQ(function<int (*)()>(*code, "count")(), 42);
  EXPECT_EQ(function<int (*)()>(*code, "sum_zeros")(), 2);
  const auto pick = function<int (*)(int)>(*code, "pick");
  const int want[] = {7, 14, 9, 99, -4, 32, 1234, 1, -1};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(pick(i), want[i]);
  std::string from(4000, 'x'), to(4000, 'y');
  function<void (*)(void*, const void*)>(*code, "copy")(to.data(), from.data());
  EXPECT_EQ(to, from);
  function<void (*)(void*)>(*code, "clear")(to.data());
  EXPECT_EQ(to, std::string(4000, '\0'));
  EXPECT_EQ(code->function("primes"), nullptr);
  EXPECT_EQ(code->function("missing"), nullptr);
}
INSTANTIATE_TEST_SUITE_P(Compilers, ElfBy, ::testing::Values("clang-19", "gcc"),
                         [](const auto& p) { return "Compiler" + std::to_string(p.index); });

TEST(Elf, UndefinedFunctionsAreNamed) {
  const std::string object =
      object_by("gcc", "int system(const char*); int f(void) { return system(\"\"); }");
  try {
    load(object);
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("system"), std::string::npos) << error.what();
  }
}

// Returns whether the bytes were accepted.
bool survives(const std::string& bytes) {
  try {
    load(bytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Elf, EveryTruncationIsRefused) {
  const std::string object = object_by("gcc");
  for (size_t n = 0; n < object.size(); n += n < 256 ? 1 : 13) {
    EXPECT_FALSE(survives(object.substr(0, n))) << n;
  }
  EXPECT_TRUE(survives(object));
}

TEST(Elf, DamageNeverCrashes) {
  const std::string object = object_by("gcc");
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = object;
    const int edits = 1 + static_cast<int>(random() % 4);
    for (int e = 0; e < edits; ++e) {
      // Half of them in the headers, where they hurt most: the section headers are at the end.
      const size_t at = round % 2
                            ? random() % bytes.size()
                            : bytes.size() - 1 - random() % std::min<size_t>(1500, bytes.size());
      const char extremes[] = {0, 1, -1, 127, -128};
      bytes[at] = random() % 2 ? static_cast<char>(random()) : extremes[random() % 5];
    }
    refused += survives(bytes) ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

std::string mappings() {
  std::ifstream file("/proc/self/maps");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Elf, NothingIsWritableAndExecutable) {
  const auto code = load(object_by("clang-19"));
  const std::string maps = mappings();
  EXPECT_EQ(maps.find("rwxp"), std::string::npos) << maps;
  // The code itself is executable, in a mapping that is not writable.
  const auto address = reinterpret_cast<uintptr_t>(code->function("pick"));
  bool found = false;
  for (size_t at = 0; at < maps.size(); at = maps.find('\n', at) + 1) {
    uintptr_t begin = 0, end = 0;
    char rights[5] = {};
    if (std::sscanf(maps.c_str() + at, "%lx-%lx %4s", &begin, &end, rights) != 3) continue;
    if (address < begin || address >= end) continue;
    found = true;
    EXPECT_STREQ(rights, "r-xp");
  }
  EXPECT_TRUE(found);
}

TEST(Elf, CodeIsFreedWithItsObject) {
  const std::string object = object_by("gcc");
  const auto count = [] {
    const std::string maps = mappings();
    return std::count(maps.begin(), maps.end(), '\n');
  };
  load(object);
  const auto before = count();
  for (int i = 0; i < 200; ++i) load(object);
  EXPECT_LE(count(), before + 2);
}

}  // namespace
}  // namespace weft
