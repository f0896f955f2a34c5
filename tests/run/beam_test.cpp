// WEFT_BEAM from end to end: the same values, plans kept in a file, and nothing timed when they are
// there.
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <unistd.h>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/interrupt.h"
#include "weft/run/run_state.h"
#include "weft/run/trial_data.h"
#include "weft/tensor/dim.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

std::string scratch_file(const std::string& name) {
  const std::string path =
      strformat("{}/weft_beam_{}_{}.txt", ::testing::TempDir(), ::getpid(), name);
  ::unlink(path.c_str());
  return path;
}

std::string content(const std::string& path) {
  std::ifstream in(path);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

Options searching(const std::string& file, int64_t width = 2) {
  Options options = Options::from_environment();
  options.beam = width;
  options.beam_seconds = 1;
  options.beam_cache = file;
  return options;
}

struct Ran {
  std::vector<float> product, softmax, updated;
  int64_t searches = 0, refused = 0;
  std::string log;
};

/// A product, a kernel of several sums, one in place; with what was searched for them.
Ran run(Options options) {
  Context context(std::move(options));
  const ContextScope scope(context);
  Ran out;
  context.log_sink() = {[](void* user, std::string_view line) {
                          static_cast<std::string*>(user)->append(line) += '\n';
                        },
                        &out.log};
  context.get<RunState>().observer.searched = [&](const SearchReport& r) {
    out.searches += r.over ? 1 : 0;
    out.refused += r.over ? r.result.refused : 0;
  };
  const auto numbers = [](int64_t rows, int64_t columns) {
    return (Tensor::arange(rows * columns) % 7).reshape({rows, columns}).cast(DType::F32).realize();
  };
  Tensor a = numbers(24, 20), b = numbers(20, 36), c = numbers(40, 40);
  out.product = a.matmul(b).to_vector<float>();
  out.softmax = (a * 0.25f).softmax().to_vector<float>();
  c.assign(c * 2 + 1).realize();
  out.updated = c.to_vector<float>();
  return out;
}

class BeamSearchRun : public ::testing::TestWithParam<const char*> {};

TEST_P(BeamSearchRun, keeps_values_and_what_it_found) {
  const std::string device = GetParam();
  const auto on = [&](Options options) {
    if (!device.empty()) options.dev = device;
    return options;
  };
  const std::string file = scratch_file("kept");
  Options plain = Options::from_environment();
  const Ran expected = run(on(plain)), searched = run(on(searching(file)));
  EXPECT_EQ(expected.searches, 0);
  EXPECT_GT(searched.searches, 2);
  EXPECT_EQ(searched.refused, 0) << searched.log;
  const auto same = [&](const Ran& got) {
    EXPECT_EQ(got.product, expected.product);
    EXPECT_EQ(got.updated, expected.updated);
    ASSERT_EQ(got.softmax.size(), expected.softmax.size());
    for (size_t i = 0; i < got.softmax.size(); ++i)
      EXPECT_NEAR(got.softmax[i], expected.softmax[i], 1e-6f);
  };
  same(searched);
  const std::string kept = content(file);
  EXPECT_NE(kept.find("tiles="), std::string::npos);
  // Found again, with and without searching.
  const Ran again = run(on(searching(file)));
  EXPECT_EQ(again.searches, 0);
  same(again);
  EXPECT_EQ(again.softmax, searched.softmax);
  Options reads = Options::from_environment();
  reads.beam_cache = file;
  const Ran shipped = run(on(reads));
  EXPECT_EQ(shipped.searches, 0);
  EXPECT_EQ(shipped.softmax, searched.softmax);
  EXPECT_EQ(content(file), kept);
  // A wider search goes on from there.
  EXPECT_GT(run(on(searching(file, 3))).searches, 2);
  ::unlink(file.c_str());
}
INSTANTIATE_TEST_SUITE_P(Devices, BeamSearchRun, ::testing::Values("", "CPU:INTERP"));

struct Ended : std::runtime_error {
  Ended() : std::runtime_error("ended") {}
};

// As Ctrl-C does: what was found is in the file, tensors are what they were, the next search goes
// on.
TEST(BeamSearchEnd, keeps_what_was_found_and_goes_on) {
  const std::string file = scratch_file("ended");
  Context context(searching(file));
  const ContextScope scope(context);
  const Tensor a = (Tensor::arange(96 * 96) % 7).reshape({96, 96}).cast(DType::F32).realize();
  const Tensor product = a.matmul(a);
  int64_t rounds = 0, over = 0;
  context.get<RunState>().observer.searched = [&](const SearchReport& r) {
    ++(r.over ? over : rounds);
  };
  InterruptCheck& check = context.get<InterruptCheck>();
  check.ask = [&] {
    if (rounds > 0) throw Ended();
  };
  EXPECT_THROW(product.realize(), Ended);
  EXPECT_EQ(rounds, 1);
  EXPECT_EQ(over, 0);
  EXPECT_NE(content(file).find(" width=0 "), std::string::npos) << content(file);
  check.ask = [] {};
  const std::vector<float> got = product.to_vector<float>();
  EXPECT_EQ(over, 1);
  EXPECT_NE(content(file).find(" width=2 "), std::string::npos) << content(file);
  Context plain(Options::from_environment());
  const ContextScope there(plain);
  const Tensor b = (Tensor::arange(96 * 96) % 7).reshape({96, 96}).cast(DType::F32);
  EXPECT_EQ(got, b.matmul(b).to_vector<float>());
  ::unlink(file.c_str());
}

TEST(BeamCache, hostile_lines_are_left_out) {
  const std::string file = scratch_file("hostile");
  const Ran expected = run(searching(file));
  std::string bad = content(file);
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = bad.find(from); at != std::string::npos; at = bad.find(from, at + to.size()))
      bad.replace(at, from.size(), to);
  };
  replace("tiles=1x", "tiles=3x");
  replace("tiles=16x", "tiles=5x");
  std::ofstream(file) << "not a plan\n" << bad << std::string(100000, 'x') << "\nkernel=";
  Options reads = Options::from_environment();
  reads.beam_cache = file;
  reads.debug = 1;
  const Ran got = run(reads);
  EXPECT_EQ(got.product, expected.product);
  EXPECT_NE(got.log.find("line 1 is no schedule, and is left out"), std::string::npos) << got.log;
  EXPECT_NE(got.log.find("is of another kernel, and is left out"), std::string::npos) << got.log;
  ::unlink(file.c_str());
}

TEST(BeamCache, a_file_that_is_not_there_is_an_error) {
  Options options = Options::from_environment();
  options.beam_cache = "/nowhere/beam.txt";
  try {
    run(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "beam.cache");
    EXPECT_NE(
        std::string(error.what())
            .find("[beam] WEFT_BEAM_CACHE names /nowhere/beam.txt, which is not there; search with "
                  "WEFT_BEAM=4 to make it, or unset WEFT_BEAM_CACHE"),
        std::string::npos)
        << error.what();
  }
}

TEST(BeamCache, kernels_of_varying_sizes_are_left_alone) {
  const std::string file = scratch_file("symbolic");
  Context context(searching(file));
  const ContextScope scope(context);
  int64_t searches = 0;
  const Tensor x = Tensor::arange(64).cast(DType::F32).realize();
  const Variable n("n", 1, 64);
  context.get<RunState>().observer.searched = [&](const SearchReport&) { ++searches; };
  for (const int64_t size : {12, 13})
    EXPECT_EQ((x.shrink({{0, n.bind(size)}}) + 1).sum().item<float>(),
              static_cast<float>(size * (size + 1) / 2));
  EXPECT_EQ(searches, 0);
  ::unlink(file.c_str());
}

TEST(TrialData, sums_of_whole_numbers_have_to_agree_bit_for_bit) {
  TrialTolerance sums;
  sums.reassociates = true;
  sums.terms = 1e6;
  const float a[] = {100000, 3}, b[] = {100001, 3};
  const auto same = [&](TrialData data) {
    return same_values(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)), DType::F32, data,
                       sums);
  };
  EXPECT_FALSE(same(TrialData::Whole));
  EXPECT_TRUE(same(TrialData::Positive));
  sums.terms = 1;
  EXPECT_FALSE(same(TrialData::Positive));
  sums.exact = false;
  EXPECT_FALSE(same(TrialData::Whole));
}

}  // namespace
}  // namespace weft
