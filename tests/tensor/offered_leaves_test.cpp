// Leaves that did not ask: filled where a loss depends on none that did.
#include "tests/tensor/tensor_test.h"
#include "weft/tensor/access.h"
#include "weft/tensor/training.h"

namespace weft {
namespace {

class OfferedLeaves : public TensorTest {
 protected:
  static Tensor offered(float x) {
    Tensor t = Tensor::from(std::vector<float>{x}, {1});
    offer_leaf(t, true);
    return t;
  }
};

TEST_F(OfferedLeaves, AreFilledWhereNoneAsked) {
  const Tensor a = offered(2), b = offered(3);
  (a * b).backward();
  EXPECT_EQ(shown(a.grad()), "f32 (1) [3]");
  EXPECT_EQ(shown(b.grad()), "f32 (1) [2]");
}

TEST_F(OfferedLeaves, ThoseWhoAskAreTheOnlyOnes) {
  const Tensor a = offered(2);
  Tensor b = offered(3);
  b.requires_grad_();
  (a * b).backward();
  EXPECT_FALSE(a.grad().defined());
  EXPECT_EQ(shown(b.grad()), "f32 (1) [2]");
  // Who does not ask any more is offered still.
  b.requires_grad_(false);
  (a * b).backward();
  EXPECT_EQ(shown(a.grad()), "f32 (1) [3]");
  EXPECT_EQ(shown(b.grad()), "f32 (1) [4]");
}

TEST_F(OfferedLeaves, MayBeTakenBackAndMayGo) {
  const Tensor a = offered(2);
  { const Tensor gone = offered(5); }
  Tensor b = offered(3);
  offer_leaf(b, false);
  (a * b).backward();
  EXPECT_EQ(shown(a.grad()), "f32 (1) [3]");
  EXPECT_FALSE(b.grad().defined());
}

TEST_F(OfferedLeaves, AreKnownByTheValueTheyHad) {
  const Tensor a = Tensor::rand({2});
  offer_leaf(a, true);
  const Tensor y = (a * 3).sum();
  a.realize();
  y.backward();
  EXPECT_EQ(shown(a.grad()), "f32 (2) [3, 3]");
}

TEST_F(OfferedLeaves, TrainingIsSetUntilTheScopeEnds) {
  {
    const TrainingScope scope(false);
    set_training(true);
    EXPECT_TRUE(is_training());
  }
  EXPECT_FALSE(is_training());
}

}  // namespace
}  // namespace weft
