// What recordings survive: several processes, a kill, torn and damaged files, a full one; and that
// programs which are not recorded pay nothing.
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "tests/viz/recorded.h"
#include "weft/base/context.h"
#include "weft/nn/layers.h"
#include "weft/run/node_numbers.h"
#include "weft/run/run_state.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/tensor.h"

namespace weft::viz {
namespace {

using Recordings = RecordedTest;

TEST(NodeNumbers, are_those_of_this_arena_whatever_a_node_was_called_elsewhere) {
  Graph one, copies;
  NodeNumbers numbers, others;
  const auto node = [](Graph& graph, int64_t i) { return graph.index(i + 1000); };
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(numbers.find(node(one, i)), NodeNumbers::kNone);
    EXPECT_EQ(numbers.add(node(one, i)), i);
    others.add(node(one, 999 - i));
  }
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(others.find(node(one, i)), 999 - i);
    EXPECT_EQ(numbers.find(node(one, i)), i);
    EXPECT_EQ(numbers.find(node(copies, i)), i) << "an equal node is the same one";
  }
  numbers.clear();
  EXPECT_EQ(numbers.find(node(one, 0)), NodeNumbers::kNone);
  EXPECT_EQ(numbers.add(node(one, 7)), 0u);
  EXPECT_EQ(numbers.find(node(one, 0)), NodeNumbers::kNone) << "7 has its number now";
}

TEST_F(Recordings, of_two_processes_share_a_file) {
  for (int i = 0; i < 2; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      compute_little(recording_to(file()));
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  const Json session = ask("session");
  ASSERT_EQ(session["processes"].size(), 2u);
  EXPECT_TRUE(session["missing"].empty());
  EXPECT_NE(session["processes"][0]["pid"], session["processes"][1]["pid"]);
  const Json first = ask("kernels", {{"process", "0"}}),
             second = ask("kernels", {{"process", "1"}});
  EXPECT_GT(first["total"], 0);
  EXPECT_EQ(first["total"], second["total"]);
}

/// What the test below runs in a process of its own.
TEST_F(Recordings, DISABLED_of_the_environment) { compute_little(Options::from_environment()); }

/// A graph of 10^6 nodes for tools/viz_latency.
TEST_F(Recordings, DISABLED_of_a_million_nodes) {
  Options options = Options::from_environment();
  options.dev = "NULL";
  record_a_large_pass(options, 1'000'000);
}

TEST_F(Recordings, have_no_secrets_of_the_command_line) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("WEFT_VIZ", "1", 1);
    ::setenv("WEFT_VIZ_FILE", file().c_str(), 1);
    ::execl("/proc/self/exe", "viz_tests", "--gtest_filter=Recordings.DISABLED_of_the_environment",
            "--gtest_also_run_disabled_tests", "--api-key", "S3CRET", "--token=S3CRET", "rest",
            nullptr);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const Json session = ask("session");
  const Json& words = session["processes"][0]["command"];
  ASSERT_GE(words.size(), 4u);
  const std::vector<std::string> last(words.end() - 4, words.end());
  EXPECT_EQ(last, (std::vector<std::string>{"--api-key", "...", "--token=...", "rest"}));
  std::ifstream in(file(), std::ios::binary);
  const std::string all(std::istreambuf_iterator<char>(in), {});
  EXPECT_GT(all.size(), 1000u);
  EXPECT_EQ(all.find("S3CRET"), std::string::npos);
}

TEST_F(Recordings, of_a_fork_are_two_processes) {
  Context context(recording_to(file()));
  const ContextScope scope(context);
  (Tensor::arange(16) * 3).realize();
  const pid_t child = ::fork();
  if (child == 0) {
    (Tensor::arange(24).cast(DType::F32) * 3.5).exp2().realize();
    context.flush();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  (Tensor::arange(17) * 5).realize();
  context.flush();
  const Json session = ask("session");
  ASSERT_EQ(session["processes"].size(), 2u) << session;
  EXPECT_TRUE(session["missing"].empty()) << session["missing"];
  EXPECT_EQ(session["processes"][0]["realizations"], 2);
  EXPECT_EQ(session["processes"][1]["realizations"], 1);
  EXPECT_EQ(session["processes"][1]["pid"], child);
}

TEST_F(Recordings, of_a_killed_program_have_what_it_had) {
  const pid_t child = ::fork();
  if (child == 0) {
    Context context(recording_to(file()));
    const ContextScope scope(context);
    for (int64_t n = 8;; ++n) (Tensor::arange(n).cast(DType::F32) * 2).exp2().sum().realize();
  }
  for (int i = 0; i < 2000; ++i) {
    ::usleep(5000);
    if (std::filesystem::exists(file()) && std::filesystem::file_size(file()) > 100000) break;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const Json session = ask("session");
  ASSERT_EQ(session["processes"].size(), 1u);
  EXPECT_FALSE(session["processes"][0]["finished"]);
  EXPECT_GT(session["processes"][0]["realizations"], 2);
  EXPECT_GT(session["processes"][0]["kernels"], 2);
  EXPECT_FALSE(text("kernels").empty());
}

TEST_F(Recordings, that_are_torn_lose_their_tail_alone) {
  compute_little(recording_to(file()));
  const std::string whole = content(file());
  const Json all = ask("session");
  write("session.weftviz", whole + whole.substr(0, whole.size() / 2));
  const Json more = ask("session");
  EXPECT_EQ(more["processes"][0]["passes"], all["processes"][0]["passes"]);
  EXPECT_FALSE(more["missing"].empty());
  write("session.weftviz", whole.substr(0, whole.size() - 10));
  const Json torn = ask("session");
  ASSERT_FALSE(torn["missing"].empty());
  EXPECT_EQ(torn["missing"].back()["why"], "torn");
  EXPECT_NE(torn["missing"].back()["text"].get<std::string>().find("are no whole block"),
            std::string::npos);
}

TEST_F(Recordings, that_are_damaged_lose_a_block_alone) {
  train_a_step(recording_to(file()));
  std::string bytes = content(file());
  const size_t before = ask("session")["processes"][0]["passes"];
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write("session.weftviz", bytes);
  const Json session = ask("session");
  ASSERT_EQ(session["processes"].size(), 1u);
  ASSERT_GE(session["missing"].size(), 1u);
  EXPECT_EQ(session["missing"][0]["why"], "damaged");
  EXPECT_LT(session["processes"][0]["passes"], before);
  // Whatever is asked of the rest has an answer.
  for (size_t i = 0; i < session["processes"][0]["passes"]; ++i)
    EXPECT_FALSE(ask("pass", {{"pass", std::to_string(i)}}).empty());
}

TEST_F(Recordings, end_where_the_file_is_full) {
  Options options = recording_to(file());
  options.viz_bytes = 60000;
  train_a_step(options);
  EXPECT_LT(std::filesystem::file_size(file()), 62000u);
  const Json session = ask("session");
  ASSERT_EQ(session["missing"].size(), 1u) << session;
  EXPECT_EQ(session["missing"][0]["why"], "size");
  EXPECT_EQ(session["missing"][0]["text"], "the recording reached WEFT_VIZ_BYTES (60000) here");
}

TEST_F(Recordings, of_other_files_are_errors) {
  EXPECT_ERROR(Session::open(at("none")), "file.missing");
  EXPECT_ERROR(
      Session::open(write("text", std::string(200, 'x'))),
      "viz.file: " + at("text") + ": it does not begin as a recording does; WEFT_VIZ=1 makes one");
  compute_little(recording_to(file()));
  std::string bytes = content(file());
  bytes[8] = 99;
  EXPECT_ERROR(Session::open(write("new", bytes)),
               "version 99 of the format; this program reads version 1");
}

TEST_F(Recordings, need_a_place) {
  Options options = recording_to("");
  options.home = options.xdg_state_home = "";
  EXPECT_ERROR(compute_little(options), "viz.place: WEFT_VIZ=1 has no folder for its file");
  options.viz_file = at("no/such") + '\0' + "folder";
  EXPECT_ERROR(compute_little(options), "file.name");
}

TEST_F(Recordings, go_to_the_state_directory) {
  Options options = recording_to("");
  options.xdg_state_home = dir_;
  compute_little(options);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(at("weft/viz"))) {
    ++files;
    EXPECT_EQ(entry.path().extension(), ".weftviz");
    EXPECT_EQ(entry.status().permissions() & std::filesystem::perms::others_read,
              std::filesystem::perms::none);
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(Recordings, are_not_made_unasked) {
  Options options = recording_to(file());
  options.viz = 0;
  Context context(options);
  const ContextScope scope(context);
  (Tensor::arange(16) * 3).realize();
  EXPECT_EQ(context.get<RunState>().recorder, nullptr);
  EXPECT_FALSE(context.tracer().on());
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(Recordings, stand_beside_other_observers) {
  Context context(recording_to(file()));
  const ContextScope scope(context);
  std::vector<std::string> passes;
  CompileObserver& observer = context.get<RunState>().observer;
  observer.passed = [&](const PassRecord& p) { passes.emplace_back(p.pass); };
  (Tensor::arange(16).cast(DType::F32) * 3).exp2().realize();
  observer = {};
  context.flush();
  EXPECT_GT(passes.size(), 20u);
  const Json recorded = ask("passes");
  EXPECT_GE(recorded["total"].get<size_t>() + 5, passes.size());
}

TEST_F(Recordings, of_replays_have_what_they_run) {
  Options options = recording_to(file());
  options.dev = "CPU:INTERP";
  compute_little(options);
  const Json kernels = ask("kernels");
  ASSERT_GT(kernels["total"], 0);
  EXPECT_GT(kernels["kernels"][0]["runs"], 0);
}

/// However layers and captured functions are made.
TEST_F(Recordings, name_lines_of_the_program_alone) {
  {
    Context context(recording_to(file()));
    const ContextScope scope(context);
    std::vector<nn::Linear> layers;
    for (int i = 0; i < 2; ++i) layers.emplace_back(8, 8);
    const auto norm = std::make_unique<nn::LayerNorm>(8);
    const auto forward = [&](const Tensor& x) {
      return (*norm)(layers[1](layers[0](x).relu())).realize();
    };
    const auto call = std::make_shared<Jit<decltype(forward)>>(forward, "forward");
    for (int i = 0; i < 3; ++i) (*call)(Tensor::full({4, 8}, 0.5).contiguous().realize());
  }
  std::set<std::string> lines;
  for (const char* view : {"realizations", "kernels"}) {
    const Json all = ask(view);
    for (const Json& row : all[view]) lines.insert(row["line"]);
  }
  size_t known = 0;
  for (const std::string& line : lines)
    for (size_t at = 0; (at = line.find(':', at)) != std::string::npos; ++at, ++known)
      EXPECT_TRUE(line.substr(0, at).ends_with("recording_test.cpp")) << line;
  EXPECT_GT(known, 1u);
}

TEST_F(Recordings, of_captured_functions_have_each_buffers_life) {
  {
    Context context(recording_to(file()));
    const ContextScope scope(context);
    auto shares = jit([](const Tensor& x) {
      const Tensor y = x.exp2().matmul(x).contiguous();
      return (y / y.sum(1, true)).realize();
    });
    for (int i = 0; i < 3; ++i) shares(Tensor::full({16, 16}, 0.5).contiguous().realize());
  }
  std::map<std::string, Json> runs;
  const Json all = ask("realizations");
  for (const Json& run : all["realizations"]) runs[run["kind"]] = run;
  for (const char* kind : {"capture", "replay"}) {
    ASSERT_TRUE(runs.contains(kind)) << all;
    EXPECT_GT(runs[kind]["steps"], 1);
    const Json memory = ask("memory", {{"realization", runs[kind]["realization"].dump()}});
    EXPECT_EQ(memory["arenas"].size(), 1u) << memory;
    std::map<std::string, int> kinds;
    for (const Json& b : memory["buffers"]) {
      ++kinds[b["kind"]];
      if (b["kind"] != "intermediate" || b["arena"].is_null()) continue;
      EXPECT_LE(b["first"], b["last"]);
      EXPECT_GT(b["bytes"], 0);
      EXPECT_FALSE(b["made_by"].is_null()) << b;
    }
    EXPECT_GT(kinds["intermediate"], 0) << memory;
  }
  EXPECT_EQ(ask("memory", {{"realization", runs["capture"]["realization"].dump()}})["by_step"],
            ask("memory", {{"realization", runs["replay"]["realization"].dump()}})["by_step"]);
}

}  // namespace
}  // namespace weft::viz
