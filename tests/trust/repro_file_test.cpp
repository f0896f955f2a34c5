// Repro files: what is written is read back, and what is damaged is an Error that says where.
#include "weft/run/repro_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/io/scratch_dir.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/graph/print.h"
#include "weft/graph/tuple.h"
#include "weft/run/realize.h"
#include "weft/trust/program.h"
#include "weft/trust/random.h"
#include "weft/trust/random_storages.h"
#include "weft/trust/source_text.h"

namespace weft::trust {
namespace {

constexpr const char* kWhole =
    "weft-repro 1\nfailed wrong: value 0\nbuild 0123\nisa avx2\noption WEFT_THREADS=2\nseed 7\n"
    "bind n 2\ndata 0 i16 2 : 01000200\ngraph\n"
    "%0 = variable index \"n\" min=1 max=4 multiple=1\n%1 = param i16 %0 slot=0\n"
    "%2 = param i16 %0 slot=1\n%3 = add i16 %1 %2\n";

std::string kWholeText() {
  std::string text = kWhole;
  return text.replace(text.find(" : "), 3, " :");
}

TEST(ReproFile, SaysWhatItWasGiven) {
  const Repro repro = parse_repro(kWholeText(), "a.repro");
  EXPECT_EQ(repro.failed, "wrong: value 0");
  EXPECT_EQ(repro.isa, "avx2");
  EXPECT_EQ(repro.variables.at("n"), 2);
  EXPECT_EQ(options_of(repro, {}).threads, 2);
  const Repro again = parse_repro(print_repro(repro), "b.repro");
  EXPECT_EQ(print_repro(again), print_repro(repro));
  Graph g;
  const RandomGraph program = program_of(g, repro);
  EXPECT_EQ(program.bindings[0].params[0].ints(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(program.bindings[0].params[1].count(), 2);  // made up
  EXPECT_TRUE(run_here(program, {}).passed());
}

TEST(ReproFile, RandomProgramsComeBack) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Graph g;
    const RandomGraph program = random_graph(g, seed);
    const std::string text = print_repro(repro_of(program, {}, {}));
    const Repro repro = parse_repro(text, "random");
    const RandomGraph back = program_of(g, repro);
    EXPECT_EQ(print_graph(back.roots), print_graph(program.roots));
    EXPECT_EQ(print_repro(repro), text);
  }
}

/// Calls of x + x, `depth` of them inside each other, each of which calls the one inside twice.
NodeRef doubled(Graph& g, NodeRef x, int depth) {
  NodeRef hole = g.param(kInnerSlots, x->dtype, x->shape->span()), body = g.add(hole, hole);
  NodeRef made = x;
  for (int64_t slot = kInnerSlots; depth >= 0; --depth, slot += kSlotsPerLevel) {
    const auto call = [&](NodeRef on, NodeRef of) {
      const NodeRef src[] = {on, of};
      const int64_t ints[] = {1, slot};
      return get_result(g, g.make({Op::Call, x->dtype, src, ints, "doubled"}), 0);
    };
    made = call(x, body);
    NodeRef next = g.param(slot + kSlotsPerLevel, x->dtype, x->shape->span());
    body = call(call(next, body), body);
  }
  return made;
}

TEST(ReproFile, CallsAreWhatTheyCompute) {
  Repro repro;
  Graph& g = *repro.graph;
  NodeRef size = g.index(2), x = g.param(0, DType::F32, {&size, 1});
  repro.roots = {doubled(g, x, 2)};
  const std::string text = print_repro(repro);
  EXPECT_NE(text.find("call"), text.npos);
  const Repro read = parse_repro(text, "a.repro");
  EXPECT_EQ(print_repro(read).find("call"), text.npos);
  Graph run;
  EXPECT_TRUE(run_here(program_of(run, read), {}).passed());
}

/// Their bodies have params of their own, which are none of the program's.
TEST(ReproFile, RepeatsRunAgain) {
  Repro repro;
  Graph& g = *repro.graph;
  NodeRef size = g.index(2), x = g.param(0, DType::F32, {&size, 1}),
          none = g.param(1, DType::I32, {});
  NodeRef inner = g.param(kInnerSlots, DType::F32, {&size, 1}),
          done = g.param(kInnerSlots + 1, DType::I32, {});
  const NodeRef src[] = {x, none, inner, done};
  const int64_t ints[] = {7, 0, 0, 0, 2, kInnerSlots, 1};
  repro.roots = {get_result(g, g.make({Op::Repeat, DType::F32, src, ints}), 0)};
  const std::string text = print_repro(repro);
  EXPECT_NE(text.find(" until=1"), text.npos) << text;
  const Repro read = parse_repro(text, "a.repro");
  EXPECT_EQ(print_repro(read), text);
  Graph run;
  EXPECT_TRUE(run_here(program_of(run, read), {}).passed());
}

TEST(ReproFile, CallsWithoutEndAreRefusedSlow) {
  Repro repro;
  Graph& g = *repro.graph;
  NodeRef size = g.index(2), x = g.param(0, DType::F32, {&size, 1});
  repro.roots = {doubled(g, x, 60)};
  EXPECT_ERROR(parse_repro(print_repro(repro), "a.repro"), "more than 4194304 operations");
}

std::string refusal(const std::string& from, const std::string& to) {
  std::string text = kWholeText();
  const size_t at = text.find(from);
  if (at == text.npos) return "no such part";
  try {
    const Repro repro = parse_repro(text.replace(at, from.size(), to), "a.repro");
    Graph g;
    program_of(g, repro);
    return "accepted";
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(ReproFile, DamageIsSaidWithItsLine) {
  constexpr std::pair<const char*, std::pair<const char*, const char*>> kCases[] = {
      {"weft-repro 1", {"weft-repro 9", "a.repro:1: the first line is not 'weft-repro 1'"}},
      {"build", {"built", "a.repro:3: 'built' is none of failed, build, isa, seed, option, bind,"}},
      {"seed 7", {"seed x", "a.repro:6: 'x' is no number"}},
      {"WEFT_THREADS=2", {"WEFT_CC=/bin/sh", "a.repro:5: 'WEFT_CC=/bin/sh' is no option that a"}},
      {"bind n 2", {"bind n 9", "the variable 'n' cannot be 9: it is 1 to 4"}},
      {"bind n 2", {"bind m 2", "nothing binds the variable 'n'"}},
      {"i16 2 :", {"index 2 :", "a.repro:8: 'index' is no dtype of data"}},
      {"i16 2 :", {"i16 4000000000 4000000000 :", "a.repro:8: a size of data is too large"}},
      {"i16 2 :", {"i16 3 :", "a.repro:8: 4 bytes of data for another shape"}},
      {"i16 2 :", {"i32 1 :", "data of param 0 are i32 (1); the graph has i16 (2)"}},
      {"01000200", {"0100020", "a.repro:8: data with half a byte"}},
      {"01000200", {"0100020z", "a.repro:8: data that is not hexadecimal"}},
      {"graph\n", {"grap\n", "a.repro:9: 'grap' is none of"}},
      {"slot=1", {"slot=65536", "it has a param 65536; there are at most 65536"}},
      {"%3 = add i16 %1 %2", {"%3 = copy f32 %1", "a.repro, after line 9"}},
  };
  for (const auto& [from, to] : kCases) {
    const std::string message = refusal(from, to.first);
    EXPECT_NE(message.find(to.second), std::string::npos) << message;
  }
  EXPECT_NE(refusal(kWholeText(), "weft-repro 1\n").find("it ends before the line 'graph'"),
            std::string::npos);
}

TEST(ReproFile, AFewLinesMayNotAskForAnySize) {
  const Repro repro = parse_repro(
      "weft-repro 1\ngraph\n%0 = param f64 16384 16384 slot=0\n%1 = param f64 16384 16384 slot=1\n"
      "%2 = param f64 16384 16384 slot=2\nreturn %0 %1 %2\n",
      "large");
  Graph g;
  try {
    program_of(g, repro);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "its params take 6442450944 bytes and more; at most 4294967296 are made");
  }
}

TEST(ReproFile, FlippedBytesAreReadOrRefused) {
  Random random(1);
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = kWholeText();
    for (int64_t flips = random.between(1, 3); flips > 0; --flips)
      random.pick(text) = static_cast<char>(random.between(0, 255));
    try {
      Graph g;
      program_of(g, parse_repro(text, "damaged"));
      ++read;
    } catch (const Error&) {}
  }
  EXPECT_GT(read, 0);
}

class SavedRepro : public ScratchDir {};

/// WEFT_REPRO_EVERY: a file of each program, without data unless asked.
TEST_F(SavedRepro, EveryProgramIsKept) {
  for (const bool with_data : {false, true}) {
    Options options;
    options.repro = at("kept") + (with_data ? "1" : "0");
    options.repro_every = true;
    options.repro_data = with_data;
    Context context(options);
    const ContextScope scope(context);
    Graph g;
    const RandomGraph program = random_graph(g, 3);
    realize(context, storages_of(context, program, program.bindings[0]));
    std::vector<std::string> files;
    for (const auto& f : std::filesystem::directory_iterator(options.repro))
      if (!f.path().string().ends_with(".running.repro")) files.push_back(f.path().string());
    ASSERT_EQ(files.size(), 1u);
    const Repro repro = read_repro(files[0]);
    EXPECT_EQ(repro.data.empty(), !with_data);
    Graph other;
    EXPECT_TRUE(run_here(program_of(other, repro), options_of(repro, {})).passed());
  }
}

TEST(SourceText, IsAProgramInEitherLanguage) {
  Graph g;
  const RandomGraph program = program_of(g, parse_repro(kWholeText(), "a.repro"));
  const std::string cpp = cpp_text(program), python = python_text(program);
  EXPECT_NE(
      cpp.find("const Tensor x0 = Tensor::from(std::vector<int64_t>{1, 2}, {2}).cast(DType::I16);"),
      std::string::npos)
      << cpp;
  EXPECT_NE(cpp.find("const Tensor x2 = x0 + x1;"), std::string::npos) << cpp;
  EXPECT_NE(python.find("x0 = Tensor([1, 2], dtype='int16').reshape((2,))"), std::string::npos)
      << python;
  EXPECT_NE(python.find("print(x2.numpy())"), std::string::npos) << python;
}

}  // namespace
}  // namespace weft::trust
