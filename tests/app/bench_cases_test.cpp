// The cases that weft is held against its peers by, and the process in which a peer computes.
#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "tests/app/command.h"
#include "weft/app/bench.h"
#include "weft/app/bench_busy.h"
#include "weft/app/bench_cases.h"
#include "weft/app/bench_peer.h"
#include "weft/base/context.h"
#include "weft/base/error.h"

namespace weft {
namespace {

class BenchCases : public ::testing::Test {
 protected:
  Context context{Options::from_environment()};
  ContextScope scope{context};

  static BenchCase named(std::string_view name) {
    for (BenchCase& which : bench_cases())
      if (which.name == name) return which;
    fail("bench", "no case is called {}", name);
  }
  /// A program that stands for Python: what it says first, and of every request.
  std::string program(const std::string& text) {
    const std::string path = ::testing::TempDir() + "/peer" + std::to_string(::getpid());
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  static std::string message_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(BenchCases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const BenchCase& which : bench_cases())
    for (const int64_t size : which.sizes) {
      const std::string name = which.group + fmt::format(fmt::runtime(which.name), size);
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_NE(name.find(std::to_string(size)), std::string::npos) << name;
    }
  EXPECT_GT(names.size(), 300u);
}

TEST_F(BenchCases, EveryFunctionOfTheTablesIsOne) {
  for (const char* name : {"sin", "exp2", "maximum", "tanh", "gelu", "add", "bitwise_xor"})
    EXPECT_EQ(named(std::string(name) + " of {}").group, "elementwise");
  EXPECT_NE(message_of([] { named("lerp of {}"); }), "") << "it takes three operands";
}

TEST_F(BenchCases, SlowAllRunAtTheirSmallestSize) {
  for (const BenchCase& which : bench_cases()) {
    SCOPED_TRACE(which.name);
    BenchValues values;
    for (const BenchOperand& o : which.operands(which.sizes.front())) values.push_back(o.make());
    realize(SizedCase{which, which.sizes.front()}.computation()(values));
    EXPECT_TRUE(!which.flops || which.flops(which.sizes.front()) > 0);
  }
}

// 2 n places of each row of the kernel's 3 x 3, multiplied and added, for both channel counts.
TEST_F(BenchCases, FlopsAreCounted) {
  EXPECT_EQ(named("matmul {0} x {0} x {0}").flops(10), 2000);
  EXPECT_EQ(named("conv2d 64 -> 64 of 56, kernel 3, padding 1, batch {}").flops(2),
            2.0 * 2 * 64 * 64 * 56 * 56 * 9);
  EXPECT_EQ(named("conv2d 256 -> 512 of 56, kernel 1, stride 2, batch {}").flops(1),
            2.0 * 256 * 512 * 28 * 28);
}

TEST_F(BenchCases, APeerComputesWhenAsked) {
  const std::string python = program(
      "echo 'yes 7.5' >&0\n"
      "while read line; do\n"
      "  case \"$line\" in\n"
      "    *runs*) echo 0.25 >&0;;\n"
      "    *'a @ b'*'[[[8,8],\"f32\",\"normal\",0],'*) echo yes >&0;;\n"
      "    *) echo \"no $line\" >&0;;\n"
      "  esac\n"
      "done\n");
  BenchPeer peer("torch", python, 2);
  EXPECT_EQ(peer.version(), "7.5");
  ASSERT_TRUE(peer.prepare(named("matmul {0} x {0} x {0}"), 8)) << peer.why();
  EXPECT_EQ(peer.seconds(3), 0.25);
  EXPECT_FALSE(peer.prepare(named("matmul {0} x {0} x {0} i8"), 8));
  EXPECT_EQ(peer.why().find("{\"code\":\"torch._int_mm(a, b)\""), 0u) << peer.why();
  BenchPeer numpy("numpy", python, 2);
  EXPECT_FALSE(numpy.prepare(named("sin of {}"), 8));
  EXPECT_EQ(numpy.why(), "has no such function");
}

// Else its workers, which poll for work for a while, take a core from whoever is measured next.
TEST_F(BenchCases, APeerIsStoppedButForItsTurns) {
  BenchPeer peer("torch", program("echo \"yes $$\" >&0\nwhile read line; do echo yes >&0; done\n"),
                 1);
  const auto is_stopped = [&] {
    std::ifstream stat("/proc/" + peer.version() + "/stat");
    std::string pid, name, state;
    stat >> pid >> name >> state;
    return state == "T";
  };
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(peer.prepare(named("matmul {0} x {0} x {0}"), 8)) << peer.why();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!is_stopped() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_TRUE(is_stopped());
  }
}

TEST_F(BenchCases, PackedWeightsAreOneDnnsAndProductsOpenBlas) {
  const std::string python = program(
      "echo 'yes 3.1' >&0\n"
      "while read line; do echo \"no $line\" >&0; done\n");
  const BenchCase layer = named("x @ w^T, w constant, {0} x {0} x {0}");
  BenchPeer onednn("onednn", python, 2), openblas("openblas", python, 2);
  EXPECT_FALSE(onednn.prepare(layer, 8));
  EXPECT_NE(onednn.why().find("linear(a, packed(b, len(a)))"), std::string::npos) << onednn.why();
  EXPECT_FALSE(openblas.prepare(layer, 8));
  EXPECT_NE(openblas.why().find("a @ b.T"), std::string::npos) << openblas.why();
  EXPECT_FALSE(openblas.prepare(named("sort of {}"), 8));
  EXPECT_EQ(openblas.why(), "has no such function");
}

TEST_F(BenchCases, AConstantWeightIsPackedOnceAndReplacedOnes) {
  const BenchCase layer = named("x @ w^T, w constant, {0} x {0} x {0}");
  const auto run = layer.network();
  BenchValues v;
  for (const BenchOperand& o : layer.operands(64)) v.push_back(o.make());
  const auto want = v[0].matmul(v[1].T()).to_vector<float>();
  for (int i = 0; i < 3; ++i) {
    const auto got = run(v)[0].to_vector<float>();
    for (size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(got[k], want[k], 1e-4) << i;
  }
}

TEST_F(BenchCases, ABusyProcessRunsOnItsCpuAndEndsWithItsScope) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  pid_t pid = 0;
  {
    const BusyProcess other(cpu);
    pid = other.pid();
    cpu_set_t its;
    ASSERT_EQ(::sched_getaffinity(pid, sizeof(its), &its), 0);
    EXPECT_EQ(CPU_COUNT(&its), 1);
    EXPECT_TRUE(CPU_ISSET(cpu, &its));
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_NE(message_of([] { BusyProcess(4000); }).find("--busy 4000: this process may not run"),
            std::string::npos);
}

TEST_F(BenchCases, BesideABusyProcessEverybodyIsMeasuredTwice) {
  const std::string python = program(
      "echo 'yes 1' >&0\n"
      "while read line; do case \"$line\" in *runs*) echo 0.5 >&0;; *) echo yes >&0;; esac; "
      "done\n");
  const std::string text =
      run_command({"bench", "cases", "--against", "torch", "--case", "matmul 4096 x 4096 x 1",
                   "--size", "1", "--repeats", "1", "--busy", "0", "--json", "--python", python})
          .out;
  EXPECT_NE(text.find("\"busy\":"), std::string::npos) << text;
  EXPECT_NE(text.find("\"torch_busy\":1"), std::string::npos) << text;
}

// ONNX Runtime is asked for a node of ONNX, not for an expression of Python.
TEST_F(BenchCases, OnnxRuntimeIsAskedForANode) {
  BenchPeer peer("ort",
                 program("echo 'yes 1.2' >&0\n"
                         "while read line; do echo \"no $line\" >&0; done\n"),
                 2);
  EXPECT_EQ(peer.version(), "1.2");
  EXPECT_FALSE(peer.prepare(named("conv2d 64 -> 64 of 56, kernel 3, padding 1, batch {}"), 1));
  EXPECT_NE(peer.why().find("Conv"), std::string::npos) << peer.why();
  EXPECT_FALSE(peer.prepare(named("sort of {}"), 8));
  EXPECT_EQ(peer.why(), "has no such function");
}

TEST_F(BenchCases, APeerThatIsMissingOrEndsIsSaid) {
  const auto open = [](const std::string& library, const std::string& python) {
    return message_of([&] { BenchPeer(library, python, 1); });
  };
  EXPECT_NE(
      open("jax", "python3").find("there are torch, torch.cuda, onednn, openblas, numpy, ort"),
      std::string::npos);
  EXPECT_NE(open("torch", "/nowhere/python").find("--python"), std::string::npos);
  EXPECT_NE(open("torch", program("echo 'no module torch' >&0")).find("(module torch)"),
            std::string::npos);
  EXPECT_NE(open("torch", program("exit 3")).find("(it ended)"), std::string::npos);
  BenchPeer peer("torch", program("echo 'yes 1' >&0\nread line\n"), 1);
  EXPECT_NE(
      message_of([&] { peer.prepare(named("matmul {0} x {0} x {0}"), 8); }).find("ended in the"),
      std::string::npos);
}

TEST_F(BenchCases, OptionsThatWouldDoNothingAreRefused) {
  const auto said = [&](const BenchOptions& options) {
    const Session session{context, stdout, stderr};
    return message_of([&] { run_bench(session, options); });
  };
  EXPECT_NE(said({.what = "gemm", .against = {"torch"}}).find("--against goes with"),
            std::string::npos);
  EXPECT_NE(said({.what = "explain", .against = {"torch"}}).find("not with explain"),
            std::string::npos);
  EXPECT_NE(said({.what = "reduce", .which = "sum"}).find("--case and --size"), std::string::npos);
  EXPECT_NE(said({.what = "gemm", .size = 8}).find("--case and --size"), std::string::npos);
  EXPECT_NE(said({.what = "gemm", .busy = 0}).find("--busy goes with"), std::string::npos);
  EXPECT_NE(said({.what = "gemm", .quick = true}).find("--quick goes with lengths, not with gemm"),
            std::string::npos);
  EXPECT_NE(
      said({.what = "lengths", .which = "nobody"}).find("no function of lengths has 'nobody'"),
      std::string::npos);
  EXPECT_NE(said({.what = "lengths", .size = 1001}).find("--size 1001 is over 1000"),
            std::string::npos);
  EXPECT_NE(said({.what = "sweep"}).find("--against torch"), std::string::npos);
  EXPECT_NE(said({.what = "cases", .which = "no such"}).find("no such"), std::string::npos);
}

TEST_F(BenchCases, ACaseIsNamedWithItsOptionOrWithout) {
  for (const char* what : {"cases", "explain"}) {
    EXPECT_TRUE(run_command({"bench", what, "no such"}).has("no case has \"no such\"")) << what;
    EXPECT_TRUE(run_command({"bench", what, "--case", "no such"}).has("no case has \"no such\""))
        << what;
  }
  EXPECT_TRUE(run_command({"bench", "gemm", "4096"}).has("--case and --size go with cases"));
}

// The Python that this machine has, where it has NumPy.
TEST_F(BenchCases, SlowNumPyTakesItsTurns) {
  const std::string missing = message_of([] { BenchPeer("numpy", "python3", 1); });
  if (!missing.empty()) GTEST_SKIP() << missing;
  const std::string text =
      run_command({"bench", "cases", "--against", "numpy", "--case", "linear algebra", "--size",
                   "8", "--repeats", "1", "--json"})
          .out;
  EXPECT_NE(text.find("\"numpy\":"), std::string::npos) << text;
  EXPECT_NE(text.find("\"geometric_mean\":"), std::string::npos) << text;
}

}  // namespace
}  // namespace weft
