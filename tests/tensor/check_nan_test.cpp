#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "weft/base/context.h"
#include "weft/tensor/jit.h"

namespace weft {
namespace {

class CheckNan : public ::testing::Test {
 protected:
  static Options options() {
    Options o = Options::from_environment();
    o.check_nan = true;
    return o;
  }
  Context context_{options()};
  ContextScope scope_{context_};
};

TEST_F(CheckNan, NamesTheFirstOperationItsLineAndItsInputs) {
  const Tensor x = Tensor::of({4.0F, 0.0F, -2.0F, 1.0F});
  const Tensor y = (x + 1).log();  // of -1
  Tensor z = (y * 2).exp().sum();
  const std::string message = error_of([&] { z.realize(); });
  EXPECT_NE(message.find("log2 gave NaN: 1 of 4 elements of shape (4), the first at (2)"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("made at"), std::string::npos) << message;
  EXPECT_NE(message.find("check_nan_test.cpp:23"), std::string::npos) << message;
  EXPECT_NE(message.find("its inputs: f32 (4) from -1 to 5"), std::string::npos) << message;
}

TEST_F(CheckNan, SaysThatTheDataHadIt) {
  const Tensor x = Tensor::of({1.0F, std::numeric_limits<float>::quiet_NaN()}) * 1;
  EXPECT_NE(error_of([&] { (x + x).realize(); }).find("NaN: 1 of 2 elements"), std::string::npos);
}

TEST_F(CheckNan, FindsItInAnUpdateInPlace) {
  Tensor w = Tensor::of({1.0F, 4.0F}).realize();
  w.assign(w - 1).realize();
  w.assign((w - 3).sqrt() + w);
  const std::string message = error_of([&] { w.realize(); });
  EXPECT_NE(message.find("sqrt gave NaN"), std::string::npos) << message;
  EXPECT_NE(message.find("from -3 to 0, 1 zeros"), std::string::npos) << message;
}

TEST_F(CheckNan, InfinitiesAndIntegersAreNotItsBusiness) {
  const Tensor x = Tensor::of({0.0F, 1.0F});
  EXPECT_EQ((1 / x).to_vector<float>()[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ((Tensor::of({1, 2}) + 1).to_vector<int>(), (std::vector<int>{2, 3}));
}

TEST_F(CheckNan, CapturedFunctionsAreChecked) {
  Jit f([](const Tensor& x) { return x.sqrt(); }, "f");
  const Tensor good = Tensor::of({1.0F, 4.0F}).realize(), bad = Tensor::of({1.0F, -4.0F}).realize();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(good).to_vector<float>()[1], 2);
  EXPECT_NE(error_of([&] { f(bad).realize(); }).find("sqrt gave NaN"), std::string::npos);
}

}  // namespace
}  // namespace weft
