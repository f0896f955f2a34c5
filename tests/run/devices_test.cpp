#include "tests/run/fixture.h"

namespace weft {
namespace {

class DevicesTest : public RunTest {
 protected:
  Device& other = context.get<DeviceTable>().open(testing::device_here("CPU:INTERP:1"));
  NodeRef copy_to(NodeRef x, Device& device) {
    return g.make(Op::Copy, x->dtype, {x}, {int64_t{device.id()}});
  }
};

TEST_F(DevicesTest, CopiesThereAndBack) {
  StorageRef a = from({1, 2, 3});
  StorageRef there = lazy([&] { return copy_to(g.add(a->value(), num(1)), other); });
  StorageRef back = lazy([&] {
    return g.mul(copy_to(g.mul(there->value(), num(2)), a->buffer()->device()), num(10));
  });
  EXPECT_EQ(read(back), (Floats{40, 60, 80}));
  EXPECT_EQ(read(there), (Floats{2, 3, 4}));
  EXPECT_EQ(&there->buffer()->device(), &other);
  EXPECT_EQ(&back->buffer()->device(), &a->buffer()->device());
}

TEST_F(DevicesTest, StateOnAnotherDeviceIsUpdatedThere) {
  StorageRef a = from({1, 2, 3});
  StorageRef p = lazy([&] { return copy_to(a->value(), other); });
  run({p});
  const void* place = p->buffer()->block();
  assign(p, [&] { return g.add(p->value(), copy_to(g.mul(a->value(), num(2)), other)); });
  run({p});
  EXPECT_EQ(p->buffer()->block(), place);
  EXPECT_EQ(read(p), (Floats{3, 6, 9}));
}

TEST_F(DevicesTest, ConstantsAndViewsAreCopiedToo) {
  StorageRef a = from({1, 2, 3});
  StorageRef constant = lazy([&] { return copy_to(num(3), other); });
  StorageRef view =
      lazy([&] { return copy_to(shrink(a->value(), g.index(1), g.index(2)), other); });
  StorageRef empty =
      lazy([&] { return copy_to(shrink(a->value(), g.index(1), g.index(0)), other); });
  run({constant, view, empty});
  EXPECT_EQ(read(constant), (Floats{3}));
  EXPECT_EQ(read(view), (Floats{2, 3}));
  EXPECT_EQ(read(empty), (Floats{}));
  EXPECT_EQ(&constant->buffer()->device(), &other);
}

TEST_F(DevicesTest, MixingDevicesInOneKernelIsAnError) {
  StorageRef a = from({1, 2, 3});
  StorageRef p = lazy([&] { return copy_to(a->value(), other); });
  run({p});
  StorageRef mixed = lazy([&] { return g.add(p->value(), a->value()); });
  try {
    run({mixed});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("would use memory of"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(mixed->realized());
}

}  // namespace
}  // namespace weft
