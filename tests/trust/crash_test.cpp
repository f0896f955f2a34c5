// Kernels that end their process leave a file; those that race are not compiled at all.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "tests/io/scratch_dir.h"
#include "tests/trust/planted_rules.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/parse.h"
#include "weft/run/realize.h"
#include "weft/run/replay.h"
#include "weft/run/repro_file.h"
#include "weft/run/translate.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"
#include "weft/trust/outcome.h"
#include "weft/trust/program.h"
#include "weft/trust/random_storages.h"

namespace weft::trust {
namespace {

constexpr const char* kProgram =
    "weft-repro 1\noption WEFT_DEV=CPU:X86\nseed 1\ngraph\n%0 = param i32 64 slot=0\n"
    "%1 = param i32 64 slot=1\n%2 = mul i32 %0 %1\n%3 = add i32 %2 %0\n";

class Crash : public ScratchDir {
 protected:
  Options options() const {
    Options out;
    out.dev = "CPU:X86";
    out.repro = at("kept");
    out.cache = false;
    return out;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    if (!std::filesystem::exists(at("kept"))) return out;
    for (const auto& f : std::filesystem::directory_iterator(at("kept")))
      out.push_back(f.path().string());
    return out;
  }
  /// As a user's program: no reference, nothing looked at beforehand.
  Outcome realized() const {
    return run_apart([this]() -> Outcome {
      Graph g;
      const RandomGraph program = program_of(g, parse_repro(kProgram, "program"));
      Context context(options());
      const ContextScope scope(context);
      realize(context, storages_of(context, program, program.bindings[0]));
      return {};
    });
  }
};

TEST_F(Crash, LeavesAFileOfTheProgramThatRan) {
  EXPECT_TRUE(realized().passed());
  EXPECT_TRUE(files().empty()) << files()[0];
  const test::Planted planted(test::PlantedPass::Wild);
  EXPECT_EQ(realized().text(), "crash: signal 11");
  ASSERT_EQ(files().size(), 1u);
  const Repro repro = read_repro(files()[0]);
  EXPECT_EQ(repro.failed, "crash: the process ended while this ran");
  EXPECT_TRUE(repro.data.empty()) << "nobody asked for it";
  Graph g;
  const RandomGraph program = program_of(g, repro);
  EXPECT_EQ(lines_of(program), 4u);
  // Where it is looked at before it runs, it says what it would have done.
  const Outcome again = run_program(program, options_of(repro, {}));
  EXPECT_EQ(again.code, "trust.access") << again.text();
  EXPECT_NE(again.what.find("reads outside its buffer"), std::string::npos) << again.text();
}

TEST_F(Crash, LeavesAFileOfWhatWasReplayed) {
  const Outcome outcome = run_apart([this]() -> Outcome {
    Graph g;
    const RandomGraph program = program_of(g, parse_repro(kProgram, "program"));
    Context context(options());
    const ContextScope scope(context);
    const Storages params = params_of(context, program, program.bindings[0]);
    const ReplayArgument arguments[] = {{"a", params[0]}, {"b", params[1]}};
    CaptureScope capture(context, arguments);
    const Storages roots = storages_of(context, program, program.bindings[0], params);
    const std::unique_ptr<Replay> replay = capture.finish(roots);
    for (int i = 0; i < 3; ++i) replay->run(arguments);
    // Idle: whatever ends the process now leaves no program.
    EXPECT_THROW(read_repro(files().at(0)), Error);
    ::kill(::getpid(), SIGKILL);
    return {};
  });
  EXPECT_EQ(outcome.text(), "crash: signal 9");
  EXPECT_FALSE(files().empty());
  // Who comes next in the folder takes away what is left.
  EXPECT_TRUE(realized().passed());
  EXPECT_TRUE(files().empty()) << files()[0];
}

TEST_F(Crash, AFolderThatCannotBeWrittenStopsNothing) {
  Options unwritable = options();
  unwritable.repro = "/proc/none";
  Graph g;
  const RandomGraph program = program_of(g, parse_repro(kProgram, "program"));
  Context context(unwritable);
  const ContextScope scope(context);
  const Storages roots = storages_of(context, program, program.bindings[0]);
  EXPECT_NO_THROW(realize(context, roots));
}

/// Whoever compiles it is told, whether or not somebody checks.
TEST(Race, IsNotCompiled) {
  Context context;
  const ContextScope scope(context);
  const Target machine = make_target("opencl", context);
  Graph g;
  const ScheduleOutput sum{
      parse_graph(g, "%0 = param f32 64 1000 slot=0\n%1 = reduce.add f32 %0 axes=1\n")[0]};
  const Schedule schedule = make_schedule({&sum, 1}, machine);
  const auto compile = [&]() -> std::string {
    try {
      for (const Kernel& k : schedule.kernels) translate_kernel(k, machine, "k");
    } catch (const InternalError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(compile(), "");  // nothing is wrong with it
  const test::Planted planted(test::PlantedPass::NoBarriers);
  const std::string said = compile();
  EXPECT_NE(said.find("a data race: item "), std::string::npos) << said;
  EXPECT_NE(said.find("and no barrier lies between"), std::string::npos) << said;
}

}  // namespace
}  // namespace weft::trust
