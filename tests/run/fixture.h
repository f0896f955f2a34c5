// What the tests of run/ share: a context of its own, tensors by hand, and the oracle to compare
// with.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/device_here.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/run/realize.h"
#include "weft/run/stats.h"

namespace weft {

using Floats = std::vector<float>;
using StorageRef = std::shared_ptr<Storage>;

class RunTest : public ::testing::Test {
 protected:
  explicit RunTest(std::string_view device = "CPU:INTERP") : context(options_for(device)) {}

  static Options options_for(std::string_view device) {
    Options options = Options::from_environment();
    options.dev = testing::device_here(device);
    options.threads = 2;
    return options;
  }

  StorageRef from(const Floats& data, std::vector<NodeRef> dims = {}) {
    Graph::Building building(g);
    if (dims.empty()) dims = {g.index(static_cast<int64_t>(data.size()))};
    return storage_from_bytes(context, std::as_bytes(std::span(data)), DType::F32, dims);
  }
  /// `make()` gives the node; it is rooted before anything can be swept.
  template <class F>
  StorageRef lazy(F make) {
    Graph::Building building(g);
    return std::make_shared<Storage>(context, make());
  }
  template <class F>
  void assign(const StorageRef& s, F make) {
    Graph::Building building(g);
    s->set_value(make());
  }
  NodeRef num(double x) { return g.constant(Value::of(DType::F32, x)); }
  NodeRef shrink(NodeRef x, NodeRef begin, NodeRef size) {
    const NodeRef src[] = {x, begin, size};
    const int64_t steps[] = {1};
    return g.make({Op::Shrink, x->dtype, src, steps});
  }
  NodeRef sum(NodeRef x) { return g.make(Op::Reduce, x->dtype, {x}, {int64_t{1}, 0}); }

  Floats read(const StorageRef& s) {
    const NodeRef n = s->value();
    int64_t count = 1;
    for (NodeRef d : n->shape->span()) count *= d->op == Op::Bind ? d->src(1)->vmin : d->vmin;
    Floats out(static_cast<size_t>(count));
    read_bytes(s, std::as_writable_bytes(std::span(out)));
    return out;
  }
  void run(std::vector<StorageRef> storages) { realize(context, storages); }
  Allocator& memory() { return context.get<DeviceTable>().default_device().allocator(); }

  Context context;
  ContextScope scope{context};
  Graph& g = tensor_graph(context);
};

}  // namespace weft
