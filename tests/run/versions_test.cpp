#include "weft/run/versions.h"

#include "tests/run/fixture.h"
#include "weft/device/device.h"

namespace weft {
namespace {

class VersionsTest : public RunTest {
 protected:
  VersionsTest() : RunTest("CPU"), building_(g) {}

  NodeRef first(NodeRef x, NodeRef size) { return shrink(x, g.index(0), size); }
  NodeRef vector(int64_t size) {
    const NodeRef dims[] = {g.index(size)};
    return g.param(0, DType::F32, dims);
  }
  std::vector<Version> versions(NodeRef value, const Target& target, bool constants = false) {
    NormalForm form;
    form.values.push_back(value);
    form.variables.push_back({nullptr, "n", 1});
    return versions_of(g, form, target, constants);
  }
  static std::vector<std::pair<int64_t, int64_t>> parts(const std::vector<Version>& all) {
    std::vector<std::pair<int64_t, int64_t>> out;
    for (const Version& v : all) out.emplace_back(v.least, v.most);
    return out;
  }
  Target with_vectors() {
    Target target = context.get<DeviceTable>().default_device().target();
    target.vector_bits = 512;
    target.canonical = false;
    return target;
  }

 private:
  Graph::Building building_;
};

using Parts = std::vector<std::pair<int64_t, int64_t>>;

TEST_F(VersionsTest, EachLengthIsInOne) {
  const Target target = with_vectors();
  const auto of = [&](NodeRef n) { return parts(versions(first(vector(4096), n), target)); };
  EXPECT_EQ(of(g.variable("n", 1, 1000)), (Parts{{1, 15}, {16, 127}, {128, 1000}}));
  EXPECT_EQ(of(g.variable("n", 16, 1000)), (Parts{{16, 127}, {128, 1000}}));
  EXPECT_EQ(of(g.variable("n", 8, 1024, 8)), (Parts{{8, 8}, {16, 120}, {128, 1024}}));
  EXPECT_EQ(of(g.variable("n", 1, 100)), (Parts{{1, 15}, {16, 100}}));
  EXPECT_EQ(of(g.variable("n", 128, 1000)), Parts{});
  EXPECT_EQ(of(g.variable("n", 1, 20)), Parts{});
}

TEST_F(VersionsTest, TwoWhereConstantsAreKept) {
  const auto of = [&](NodeRef n) {
    return parts(versions(first(vector(4096), n), with_vectors(), true));
  };
  EXPECT_EQ(of(g.variable("n", 1, 1000)), (Parts{{1, 15}, {16, 1000}}));
  EXPECT_EQ(of(g.variable("n", 16, 1000)), Parts{});
}

TEST_F(VersionsTest, SizesAreNarrower) {
  NodeRef n = g.variable("n", 1, 1000), value = first(vector(1000), n);
  const std::vector<Version> all = versions(value, with_vectors());
  ASSERT_EQ(all.size(), 3u);
  for (const Version& v : all) {
    NodeRef size = v.form.values[0]->dim(0);
    EXPECT_EQ(size->vmin, v.least);
    EXPECT_EQ(size->vmax, v.most);
    EXPECT_EQ(v.origins.at(v.form.values[0]->hash), value->hash);
  }
}

TEST_F(VersionsTest, NoneWhereTheyWouldNotPay) {
  NodeRef n = g.variable("n", 1, 1000), m = g.variable("m", 1, 1000), x = vector(1000);
  const Target target = with_vectors();
  EXPECT_TRUE(versions(first(x, g.index(7)), target).empty()) << "no length";
  EXPECT_TRUE(versions(shrink(x, n, g.index(1)), target).empty()) << "a place";
  EXPECT_TRUE(versions(g.add(sum(first(x, n)), sum(first(x, m))), target).empty()) << "two";
  Target scalars = target;
  scalars.vector_bits = 0;
  EXPECT_TRUE(versions(first(x, n), scalars).empty());
  Target canonical = target;
  canonical.canonical = true;
  EXPECT_TRUE(versions(first(x, n), canonical).empty());
  NodeRef large = first(x, n);
  for (int i = 0; i < 500; ++i) large = g.mul(g.add(large, num(1)), num(0.5));
  EXPECT_TRUE(versions(large, target).empty());
}

/// Outputs and inputs are those of all lengths; intermediates are there for those of their version.
TEST_F(VersionsTest, JoinedOverTheSameInputsAndOutputs) {
  NodeRef n = g.variable("n", 1, 1000), value = first(vector(1000), n);
  NormalForm form;
  form.values.push_back(value);
  form.variables.push_back({n, "n", 5});
  const std::vector<Version> versions = versions_of(g, form, with_vectors());
  ASSERT_EQ(versions.size(), 3u);
  Device& device = context.get<DeviceTable>().default_device();
  std::vector<CompiledSchedule> compiled(3);
  for (CompiledSchedule& s : compiled) {
    s.variables = {"n"};
    s.buffers.push_back({DType::F32, &device, IndexProgram(1), -1, 0});
    s.buffers.push_back({DType::F32, &device, IndexProgram(8), -1, -1});
    s.buffers.push_back({DType::F32, &device, IndexProgram(1), 0, -1});
    s.steps.push_back({ScheduleStep::Kind::Copy, nullptr, {2, 1}, {}, &device, {}});
    s.steps.push_back({ScheduleStep::Kind::Copy, nullptr, {1, 0}, {}, &device, {}});
    s.outputs = {0};
  }
  const auto all = joined(g, form, versions, compiled);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->buffers.size(), 5u);
  ASSERT_EQ(all->steps.size(), 6u);
  for (const int64_t length : {1, 15, 16, 127, 128, 1000}) {
    const int64_t values[] = {length};
    EXPECT_EQ(all->bytes_of(all->outputs[0], values), 4 * length);
    int64_t steps = 0, bytes = 0;
    for (const CompiledStep& s : all->steps) steps += s.lengths.contain(values);
    for (size_t b = 0; b < all->buffers.size(); ++b)
      if (all->buffers[b].intermediate()) bytes += all->bytes_of(static_cast<int>(b), values);
    EXPECT_EQ(steps, 2) << length;
    EXPECT_EQ(bytes, 32) << length;
  }
  EXPECT_FALSE(joined(g, form, {}, {}));
}

/// A copy of a constant is there once, for all lengths; one that differs would be a second.
TEST_F(VersionsTest, WhatAllMakeOfConstantsIsThereOnce) {
  NodeRef n = g.variable("n", 1, 1000);
  const NodeRef dims[] = {g.index(8)};
  NodeRef value = g.add(sum(first(vector(1000), n)), sum(g.param(1, DType::F32, dims)));
  NormalForm form;
  form.values.push_back(value);
  form.variables.push_back({n, "n", 5});
  const std::vector<Version> versions = versions_of(g, form, with_vectors());
  ASSERT_EQ(versions.size(), 3u);
  Device& device = context.get<DeviceTable>().default_device();
  std::vector<CompiledSchedule> compiled(3);
  for (CompiledSchedule& s : compiled) {
    s.variables = {"n"};
    s.buffers.push_back({DType::F32, &device, IndexProgram(1), -1, 0});
    s.buffers.push_back({DType::F32, &device, IndexProgram(8), -1, -1});
    s.buffers.push_back({DType::F32, &device, IndexProgram(8), 1, -1});
    s.buffers.push_back({DType::F32, &device, IndexProgram(1), 0, -1});
    s.steps.push_back({ScheduleStep::Kind::Copy, nullptr, {2, 1}, {}, &device, {}});
    s.steps.push_back({ScheduleStep::Kind::Copy, nullptr, {1, 0}, {}, &device, {}});
    s.outputs = {0};
  }
  const std::vector<bool> constants = {false, true};
  const auto all = joined(g, form, versions, compiled, constants);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->steps.size(), 4u) << "of the constant one, of its copy one for each version";
  EXPECT_TRUE(all->steps[0].lengths.all());
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_FALSE(all->steps[i].lengths.all());
    EXPECT_EQ(all->steps[i].buffers[0], all->steps[0].buffers[1]);
  }
  EXPECT_TRUE(all->buffers[static_cast<size_t>(all->steps[0].buffers[1])].lengths.all());
  EXPECT_EQ(joined(g, form, versions, compiled)->steps.size(), 6u) << "nothing is constant";
  compiled[0].steps[0].variables.push_back({-1, 4});
  EXPECT_FALSE(joined(g, form, versions, compiled, constants));
}

}  // namespace
}  // namespace weft
