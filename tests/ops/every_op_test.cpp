// Every op of ops.def on every dtype of dtypes.def, through the whole of run/ on the interpreter
// and on compiled C, against the oracle: bit-equal where rounding is pinned, one unit in the last
// place where the row says that it approximates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/run/fixture.h"
#include "tests/support/compiler/isa_levels.h"
#include "weft/base/int128.h"
#include "weft/eval/evaluate.h"
#include "weft/graph/print.h"
#include "weft/graph/schema.h"
#include "weft/graph/tuple.h"
#include "weft/graph/verify.h"

namespace weft {
namespace {

using Ints = std::vector<int64_t>;

using DTypes = std::vector<DType>;

DTypes data_types() {
  DTypes all;
  for (const DTypeRow& row : kDTypes)
    if (is_data(row.dtype)) all.push_back(row.dtype);
  return all;
}

/// Those of the default device's machine.
DTypes data_types_of(Context& context) {
  const DTypeSet has = context.get<DeviceTable>().default_device().target().dtypes;
  DTypes all = data_types();
  std::erase_if(all, [has](DType d) { return !(has & dtype_bit(d)); });
  return all;
}

/// Ops that no tensor graph holds, and those that only schedule/ makes
/// (tests/device/dot_products_test.cpp). MulAdd may round twice: then infinity less infinity comes
/// out where a product that is rounded later is finite.
bool is_tensor_op(Op op) {
  const OpGroup g = group(op);
  return g != OpGroup::Memory && g != OpGroup::Linear && op != Op::Range && op != Op::ToIndex &&
         op != Op::Stage && op != Op::MulAdd && !has_trait(op, kWords) && !has_trait(op, kTable);
}

/// Zeros, ones, limits, what rounds, overflows or is no number; 24 values of each dtype.
std::vector<Value> edges(DType d) {
  std::vector<Value> out;
  if (!is_float(d)) {
    const int64_t least = d == DType::Bool ? 0 : int_min(d);
    const auto most = d == DType::Bool ? 1 : static_cast<int64_t>(int_max(d));
    for (const int64_t x : {least, least + 1, most, most - 1, most / 2, least / 2, most / 3})
      out.push_back(Value::of(d, x));
    for (const int64_t x : {0, 1, 2, 3, 5, 7, 8, 15, 31, 32, 63, 64, 100, -1, -2, -3, -7})
      out.push_back(Value::of(d, x));
    return out;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double x :
       {0.0,           -0.0,     1.0,       -1.0,
        2.0,           0.5,      -3.0,      0.1,
        -2.7,          7.3,      127.5,     300.0,
        -40.25,        65504.0,  65520.0,   1e-8,
        -6e-8,         1e-40,    3e38,      float_max(d),
        -float_max(d), infinity, -infinity, std::numeric_limits<double>::quiet_NaN()})
    out.push_back(Value::of(d, x));
  return out;
}

/// Operand `k` of `arity`: together they run through all combinations of edges, or of 12 of them.
eval::Array operand(DType d, int k, int arity) {
  const std::vector<Value> all = edges(d);
  const int64_t each = arity < 3 ? 24 : 12, stride = 24 / each;
  int64_t count = 1, step = 1;
  for (int i = 0; i < arity; ++i) count *= each;
  for (int i = 0; i < k; ++i) step *= each;
  eval::Array out(d, {count});
  for (int64_t i = 0; i < count; ++i)
    out.set(i, all[static_cast<size_t>(i / step % each * stride + k % stride)]);
  return out;
}

/// Numbers whose sums and products are exact in any dtype and order, of these extents.
eval::Array small(DType d, const Ints& extents, int64_t least = -2, int64_t most = 2) {
  eval::Array out(d, extents);
  for (int64_t i = 0; i < out.count(); ++i)
    out.set(i, Value::of(d, least + (i * 7 + i / 5) % (most - least + 1)));
  return out;
}

struct Case {
  Op op;
  DType dtype;  // that it is about
  NodeRef node;
};

// ---- comparing

/// How many numbers of their dtype lie between two values.
int64_t distance(Value a, Value b) {
  const auto place = [](Value v) {
    uint64_t raw = 0;
    v.store(&raw);
    const uint64_t sign = uint64_t{1} << (bits(v.dtype()) - 1);
    const auto magnitude = static_cast<int64_t>(raw & (sign - 1));
    return static_cast<Int128>((raw & sign) != 0 ? -magnitude : magnitude);
  };
  const Int128 between = place(a) - place(b), most = INT64_MAX;
  return static_cast<int64_t>(std::min(between < 0 ? -between : between, most));
}

bool same(Op op, Value got, Value wanted) {
  if (got == wanted || (got.is_nan() && wanted.is_nan())) return true;
  if (got.is_nan() || wanted.is_nan() || !is_float(got.dtype())) return false;
  // Which zero an extreme gives is not defined.
  const bool extreme = op == Op::Max || op == Op::Min || group(op) == OpGroup::Loop;
  if ((extreme || op == Op::Scatter) && got.is_zero() && wanted.is_zero()) return true;
  return has_trait(op, kApproximate) && distance(got, wanted) <= 1;
}

void expect_same(const Case& c, const eval::Array& got, const eval::Array& wanted) {
  for (int64_t i = 0; i < wanted.count(); ++i) {
    if (same(c.op, got.at(i), wanted.at(i))) continue;
    ADD_FAILURE() << info(c.op).mnemonic << " on " << name(c.dtype) << ", element " << i << ": "
                  << got.at(i).text() << ", not " << wanted.at(i).text() << "\n"
                  << print_graph(c.node);
    return;
  }
}

/// Elementwise ops say themselves what they take; the others take everything.
void expect_all_covered(const std::vector<Case>& cases, const DTypes& dtypes) {
  std::map<Op, std::set<DType>> seen;
  for (const Case& c : cases) seen[c.op].insert(c.dtype);
  for (const OpInfo& row : kOps) {
    if (!is_tensor_op(row.op)) continue;
    EXPECT_FALSE(seen[row.op].empty()) << row.mnemonic << " has no case";
    const bool integers = row.op == Op::Iota || row.op == Op::Variable || row.op == Op::Bind ||
                          row.op == Op::CumCount;
    for (DType d : dtypes) {
      const bool expected = !is_alu(row.op) && (!integers || is_int(d));
      EXPECT_TRUE(!expected || seen[row.op].contains(d)) << row.mnemonic << " on " << name(d);
    }
  }
}

// ---- building

class Cases {
 public:
  Cases(Context& context, Graph& graph) : context_(context), g_(graph) {}

  std::vector<Case> of(const DTypes& dtypes) {
    for (DType d : dtypes) {
      elementwise(d);
      movement(d);
      loops(d);
      tuples(d);
      storage(d);
      leaves(d);
    }
    return std::move(cases_);
  }
  const eval::Inputs& inputs() const { return inputs_; }

 private:
  NodeRef data(const eval::Array& values) {
    std::vector<NodeRef> dims;
    for (const int64_t d : values.extents()) dims.push_back(g_.index(d));
    held_.push_back(storage_from_bytes(context_, values.bytes(), values.dtype(), dims));
    NodeRef n = held_.back()->value();
    inputs_.buffers[buffer_id(n)] = values;
    return n;
  }
  /// Null where the op does not take these operands.
  NodeRef make(Op op, DType dtype, std::vector<NodeRef> src, Ints ints = {}) {
    const NodeSpec spec{op, dtype, src, ints, {}, 1};
    return node_problem(spec, static_cast<uint8_t>(Dialect::Tensor)) ? nullptr : g_.make(spec);
  }
  void add(Op op, DType d, NodeRef n) {
    if (n) cases_.push_back({op, d, n});
  }
  std::vector<NodeRef> sized(NodeRef x, const Ints& dims) {
    std::vector<NodeRef> src = {x};
    for (const int64_t d : dims) src.push_back(g_.index(d));
    return src;
  }

  void elementwise(DType d) {
    std::vector<NodeRef> x[4];
    for (int arity = 1; arity <= 3; ++arity)
      for (int k = 0; k < arity; ++k) x[arity].push_back(data(operand(d, k, arity)));
    NodeRef condition = data(operand(DType::Bool, 0, 3));
    for (const OpInfo& row : kOps) {
      if (!is_alu(row.op) || !is_tensor_op(row.op)) continue;
      const DType result = (row.traits & kBoolResult) ? DType::Bool : d;
      std::vector<NodeRef> src = x[row.arity];
      if (row.op == Op::Where) src[0] = condition;
      if (row.op != Op::Cast && row.op != Op::Bitcast)
        add(row.op, d, make(row.op, result, src));
      else
        for (DType to : data_types_of(context_)) add(row.op, d, make(row.op, to, src));
    }
  }

  void movement(DType d) {
    NodeRef x = data(small(d, {4, 6, 5})), index = data(small(DType::I32, {4, 3, 5}, -1, 6));
    const auto move = [&](Op op, std::vector<NodeRef> src, Ints ints) {
      add(op, d, make(op, d, std::move(src), std::move(ints)));
    };
    move(Op::Reshape, sized(x, {2, 12, 5}), {});
    move(Op::Expand, sized(data(small(d, {4, 1, 5})), {4, 6, 5}), {});
    move(Op::Permute, {x}, {2, 0, 1});
    move(Op::Pad, sized(x, {1, 0, 2, 0, 1, 2}), {0, 1, 0});
    move(Op::Shrink, sized(x, {1, 0, 1, 2, 3, 2}), {1, 2, 3});
    move(Op::Flip, {x}, {0, 2});
    move(Op::Window, {x}, {1, 3, 2, 1});
    move(Op::Unwindow, {data(small(d, {4, 2, 3})), g_.index(6)}, {1, 3, 2, 1});
    move(Op::Gather, {x, index}, {1});
    if (is_int(d))  // as the index
      add(Op::Gather, d,
          make(Op::Gather, DType::F32, {data(small(DType::F32, {6})), data(small(d, {9}, -1, 7))},
               {0}));
  }

  void loops(DType d) {
    NodeRef x = data(small(d, {4, 6, 5}));
    // Of ones and signs, so that all products stay in range.
    NodeRef factors = data(small(d, {4, 6, 5}, is_unsigned(d) ? 0 : -1, 1));
    for (int64_t fold = 1; fold < kFoldCount; ++fold) {
      NodeRef of = static_cast<Fold>(fold) == Fold::Mul ? factors : x;
      add(Op::Reduce, d, make(Op::Reduce, d, {of}, {fold, 0, 2}));
      add(Op::Reduce, d, make(Op::Reduce, d, {of}, {fold, 1}));
      add(Op::Scan, d, make(Op::Scan, d, {of}, {fold, 1}));
    }
    for (const int64_t stacked : {0, 1})
      for (const int64_t k : {0, 1}) {
        NodeRef n = argmax(x, ++loop_, stacked);
        add(Op::Loop, d, make(Op::Get, k ? DType::I32 : d, {n}, {k}));
        cases_.push_back({Op::Get, d, cases_.back().node});
        cases_.push_back({Op::Carry, d, cases_.back().node});
        cases_.push_back({Op::Elem, d, cases_.back().node});
      }
  }
  /// twice(x) with itself as gradient, x doubled three times, a kernel that adds x to itself,
  /// twice(twice(x)) as calls.
  void tuples(DType d) {
    NodeRef x = data(small(d, {4, 5}, 0, 1));
    const auto get = [&](Op op, NodeRef tuple) {
      if (tuple) add(op, d, make(Op::Get, d, {tuple}, {0}));
    };
    NodeRef nothing = make(Op::Sink, DType::Void, {});
    get(Op::Function,
        make(Op::Function, d, {make(Op::Add, d, {x, x}), x, nothing}, {1, 1, kInnerSlots}));
    NodeRef row = g_.param(kInnerSlots, d, {&x->shape->span()[1], 1});
    NodeRef start = data(small(d, {5}, 0, 1));
    NodeRef state = g_.param(kInnerSlots + 1, d, start->shape->span());
    if (NodeRef next = make(Op::Add, d, {row, state}))
      get(Op::Repeat, make(Op::Repeat, d, {x, start, next, state}, {4, 1, 1, 0, 1, kInnerSlots}));
    get(Op::Custom, kernel(x, d));
    NodeRef hole = g_.param(kInnerSlots, d, x->shape->span());
    if (NodeRef twice = make(Op::Add, d, {hole, hole}))
      get(Op::Call, called(called(x, twice), twice));
  }
  /// A call on x, or on the result of the call x.
  NodeRef called(NodeRef x, NodeRef body) {
    const int64_t ints[] = {1, kInnerSlots};
    if (x->op == Op::Call) x = get_result(g_, x, 0);
    const NodeRef src[] = {x, body};
    return g_.make({Op::Call, x->dtype, src, ints, "twice"});
  }
  NodeRef kernel(NodeRef x, DType d) {
    NodeRef size = g_.index(20), at = g_.range(20, 0);
    NodeRef to = g_.param(0, d, {&size, 1}), from = g_.param(1, d, {&size, 1});
    NodeRef store =
        g_.make(Op::Store, DType::Void, {to, at, g_.make(Op::Load, d, {from, at})}, {0, 0});
    NodeRef out = g_.param(kInnerSlots, d, x->shape->span());
    const NodeRef src[] = {x, out, g_.make(Op::Sink, DType::Void, {store})};
    const int64_t ints[] = {1, 0};
    return g_.make({Op::Custom, d, src, ints, "copied"});
  }
  NodeRef argmax(NodeRef x, int64_t id, int64_t stacked) {
    NodeRef place = make(Op::Iota, DType::I32, {x->dim(0), x->dim(1), x->dim(2)}, {1});
    NodeRef value = make(Op::Elem, x->dtype, {}, {0, id}),
            at = make(Op::Elem, DType::I32, {}, {1, id});
    NodeRef best = make(Op::Carry, x->dtype, {}, {0, id});
    NodeRef best_at = make(Op::Carry, DType::I32, {}, {1, id});
    NodeRef better = make(Op::Lt, DType::Bool, {best, value});
    NodeRef start = g_.constant(Value::of(x->dtype, is_unsigned(x->dtype) ? 0 : -1));
    return make(Op::Loop, DType::Void,
                {x, place, start, g_.constant(Value::of(DType::I32, -1)),
                 make(Op::Where, x->dtype, {better, value, best}),
                 make(Op::Where, DType::I32, {better, at, best_at})},
                {id, 2, 2, stacked, 1});
  }

  void storage(DType d) {
    NodeRef x = data(small(d, {4, 6})), other = data(small(d, {4, 3}, 0, 1));
    NodeRef index = data(small(DType::I64, {4, 3}, -1, 6));
    add(Op::Contiguous, d, make(Op::Contiguous, d, {x}));
    add(Op::Detach, d, make(Op::Detach, d, {x}));
    const DeviceId there =
        context_.get<DeviceTable>().open(testing::device_here("CPU:INTERP:1")).id();
    const DeviceId here = context_.get<DeviceTable>().default_device().id();
    NodeRef copy = make(Op::Copy, d, {x}, {there});
    add(Op::Copy, d, make(Op::Copy, d, {copy}, {here}));
    NodeRef view = make(Op::Shrink, d, sized(x, {0, 1, 4, 3}), {1, 2});
    add(Op::Assign, d, make(Op::Assign, d, {x, view, other}));
    add(Op::Cat, d, make(Op::Cat, d, {other, x, other}, {1}));
    add(Op::Cat, d, make(Op::Cat, d, std::vector<NodeRef>(200, other), {1}));
    for (int64_t combine = 0; combine < kFoldCount; ++combine)
      add(Op::Scatter, d, make(Op::Scatter, d, {x, index, other}, {1, combine, 0}));
    if (is_int(d)) {
      add(Op::CumCount, d, make(Op::CumCount, d, {x, index}, {1}));
      add(Op::CumCount, d,
          make(Op::CumCount, DType::I32, {data(small(DType::I32, {6})), data(small(d, {9}, -1, 7))},
               {0}));
    }
    if (is_int(d))  // as the index
      add(Op::Scatter, d,
          make(Op::Scatter, DType::F32,
               {data(small(DType::F32, {6})), data(small(d, {9}, -1, 7)),
                data(small(DType::F32, {9}))},
               {0, 1, 0}));
  }

  void leaves(DType d) {
    add(Op::Iota, d, make(Op::Iota, d, {g_.index(3), g_.index(9)}, {1}));
    for (Value v : {edges(d)[3], edges(d)[6]}) {
      NodeRef one = make(Op::Reshape, d, sized(g_.constant(v), {1}));
      add(Op::Const, d, make(Op::Contiguous, d, {make(Op::Expand, d, sized(one, {7}))}));
    }
    // What run/ takes in place of a Param, and what holds the data here.
    NodeRef x = data(small(d, {5}));
    add(Op::Buffer, d, make(Op::Contiguous, d, {x}));
    add(Op::Param, d, cases_.back().node);
    NodeRef bound = make(Op::Bind, DType::Index, {g_.variable("n", 1, 9), g_.index(4)});
    if (NodeRef n = make(Op::Cast, d, {bound})) {
      for (Op op : {Op::Bind, Op::Variable}) add(op, d, make(Op::Contiguous, d, {n}));
    }
  }

  Context& context_;
  Graph& g_;
  std::vector<Case> cases_;
  std::vector<StorageRef> held_;
  eval::Inputs inputs_;
  int64_t loop_ = 0;
};

void compare(std::string_view device, std::string_view compiler, const DTypes& dtypes,
             const std::string& isa_level = "") {
  Options options = Options::from_environment();
  options.isa = isa_level;
  options.dev = testing::device_here(device);
  options.cc = compiler;
  Context context(options);
  const ContextScope scope(context);
  Cases builder(context, tensor_graph(context));
  std::vector<Case> cases;
  std::vector<NodeRef> nodes;
  std::vector<StorageRef> results;
  {
    const Graph::Building building(tensor_graph(context));
    cases = builder.of(dtypes);
    for (const Case& c : cases) {
      nodes.push_back(c.node);
      results.push_back(std::make_shared<Storage>(context, c.node));
    }
  }
  expect_all_covered(cases, dtypes);
  const std::vector<eval::Array> wanted = eval::evaluate(nodes, builder.inputs());
  realize(context, results);
  for (size_t i = 0; i < cases.size(); ++i)
    expect_same(cases[i],
                eval::Array::copy_of(wanted[i].dtype(), wanted[i].extents(),
                                     storage_to_bytes(*results[i]).data()),
                wanted[i]);
}

TEST(EveryOp, Interpreted) { compare("CPU:INTERP", "", data_types()); }
TEST(EveryOp, MachineCode) {
  for (const std::string& level : testing::isa_levels()) {
    SCOPED_TRACE(level);
    compare("CPU:X86", "", data_types(), level);
  }
}
/// The others take a compiler half a minute; tests/device/ops_test.cpp has their plain kernels.
TEST(EveryOp, CompiledForTwoTypes) { compare("CPU:C", "", {DType::BF16, DType::I32}); }
/// On all dtypes of a device that may not be there.
void compare_where_present(const char* device) {
  Options options = Options::from_environment();
  options.dev = device;
  Context context(options);
  try {
    context.get<DeviceTable>().open(device);
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  compare(device, "", data_types_of(context));
}
TEST(EveryOp, SlowOpencl) { compare_where_present("OPENCL"); }
TEST(EveryOp, SlowWebgpu) { compare_where_present("WEBGPU"); }
TEST(EveryOp, SlowCuda) { compare_where_present("CUDA"); }
TEST(EveryOp, SlowNvrtc) { compare_where_present("NVRTC"); }
TEST(EveryOp, SlowCompiled) {
  for (const char* compiler : {"clang-19", "gcc"}) compare("CPU:C", compiler, data_types());
}

}  // namespace
}  // namespace weft
