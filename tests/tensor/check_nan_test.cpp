#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "weft/base/context.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/transforms.h"

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
  const int line = __LINE__ + 1;
  const Tensor y = (x + 1).log();  // of -1
  Tensor z = (y * 2).exp().sum();
  const std::string message = error_of([&] { z.realize(); });
  EXPECT_NE(message.find("log gave NaN: 1 of 4 elements of shape (4), the first at (2)"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("made at"), std::string::npos) << message;
  EXPECT_NE(message.find("check_nan_test.cpp:" + std::to_string(line)), std::string::npos)
      << message;
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

TEST_F(CheckNan, LooksIntoWhatLoopsAndBodiesAreGiven) {
  const Tensor x = Tensor::of({1.0F, -4.0F, 9.0F});
  const Tensor steps =
      scan([](const Tensors& c, const Tensors& s) { return ScanResult{{c[0] + s[0].sqrt()}, {}}; },
           {Tensor::zeros({})}, {x})
          .carried[0];
  const std::string of_scan = error_of([&] { steps.to_vector<float>(); });
  EXPECT_NE(of_scan.find("repeat gave NaN"), std::string::npos) << of_scan;
  EXPECT_NE(of_scan.find("f32 (3) from -4 to 9"), std::string::npos) << of_scan;
  const Tensor large = (Tensor::of({3e38F, 3e38F, -3e38F}) * 10).realize();  // infinities
  const std::string of_fold = error_of([&] { large.cumsum(0).to_vector<float>(); });
  EXPECT_NE(of_fold.find("scan gave NaN: 1 of 3"), std::string::npos) << of_fold;
  const std::string of_loop = error_of([&] { large.cummax(0).sin().to_vector<float>(); });
  EXPECT_NE(of_loop.find("sin gave NaN: 3 of 3"), std::string::npos) << of_loop;
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
