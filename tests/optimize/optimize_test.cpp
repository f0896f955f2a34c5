#include "tests/optimize/kernels.h"
#include "weft/optimize/cost.h"

namespace weft {
namespace {

using namespace test;

Kernel elementwise_kernel(int64_t n, DType dtype = DType::F32) {
  KernelBuilder b;
  NodeRef i = b.range(n, 0);
  NodeRef x = b.load(b.param(1, dtype, n), i);
  b.store(b.param(0, dtype, n), i, b.g.add(b.g.mul(x, x), x));
  return b.kernel();
}

TEST(Optimize, elementwise_of_every_size_keeps_its_values) {
  for (int bits : {128, 256, 512})
    for (int64_t n = 1; n < 70; ++n) {
      const Kernel k = elementwise_kernel(n);
      expect_kept(k, buffers_for(k), bits);
    }
}

TEST(Optimize, elementwise_is_vectors_shared_by_cores) {
  const Kernel k = elementwise_kernel(4096);
  const Kernel better = expect_kept(k, buffers_for(k));
  EXPECT_TRUE(has_binding(better, Binding::Vector));
  EXPECT_TRUE(has_binding(better, Binding::Core));
}

// Neighbours in memory are never a gather, however many there are.
TEST(Optimize, elementwise_is_vectors_where_no_cache_holds_it) {
  for (int64_t n : {1 << 16, 1 << 20, 1 << 24}) {
    const Kernel k = elementwise_kernel(n);
    EXPECT_TRUE(has_binding(optimize_kernel(k, target_with_bits(512), {}), Binding::Vector)) << n;
  }
}

TEST(Optimize, lanes_follow_the_widest_dtype) {
  auto lanes = [](DType dtype) {
    const Kernel k = elementwise_kernel(1024, dtype);
    const Kernel better = expect_kept(k, buffers_for(k));
    for (NodeRef n : Toposort(better.sink))
      if (n->op == Op::Range && range_binding(n) == Binding::Vector) return n->src(0)->vmax;
    return int64_t{1};
  };
  EXPECT_EQ(lanes(DType::F64), 8);
  EXPECT_EQ(lanes(DType::F32), 16);
  EXPECT_EQ(lanes(DType::F16), 16);
  EXPECT_EQ(lanes(DType::U8), 64);
}

TEST(Optimize, products_of_every_layout_and_odd_sizes) {
  for (int bits : {128, 512})
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        for (auto [m, n, k] : {std::array<int64_t, 3>{17, 33, 19},
                               {5, 64, 48},
                               {64, 10, 16},
                               {1, 50, 40},
                               {40, 1, 50},
                               {14, 32, 70}}) {
          const Kernel kernel = matmul_kernel(m, n, k, ta, tb);
          expect_kept(kernel, buffers_for(kernel), bits);
        }
}

TEST(Optimize, convolutions_in_both_layouts) {
  for (bool batch_inner : {false, true})
    for (ConvPart part : {ConvPart::Forward, ConvPart::Input, ConvPart::Weight})
      for (const ConvShape& s :
           {ConvShape{3, 1, 8, 9, 4, 5}, {18, 2, 5, 6, 5, 3}, {2, 2, 19, 18, 3, 2}}) {
        const Kernel kernel = conv_kernel(s, batch_inner, part);
        expect_kept(kernel, buffers_for(kernel));
      }
}

TEST(Optimize, softmax_in_one_kernel) {
  for (int64_t n : {5, 16, 37}) {
    KernelBuilder b;
    NodeRef i = b.range(6, 0), j = b.range(n, 1), j1 = b.range(n, 2), j2 = b.range(n, 3);
    NodeRef x = b.param(1, DType::F32, 6 * n);
    auto at = [&](NodeRef column) { return b.load(x, b.g.add(b.g.mul(i, b.index(n)), column)); };
    NodeRef top = b.reduce(Fold::Max, at(j1), {j1});
    NodeRef sum = b.reduce(Fold::Add, b.g.sub(at(j2), top), {j2});
    b.store(b.param(0, DType::F32, 6 * n), b.g.add(b.g.mul(i, b.index(n)), j),
            b.g.add(b.g.mul(at(j), sum), top));
    b.store(b.param(2, DType::F32, 6), i, sum);
    const Kernel k = b.kernel();
    expect_kept(k, buffers_for(k));
  }
}

TEST(Optimize, whole_sums_use_vectors) {
  for (int64_t n : {1, 7, 16, 100, 4096, 4099}) {
    KernelBuilder b;
    NodeRef r = b.range(n, 0);
    b.store(b.param(0, DType::F32, 1), b.index(0),
            b.reduce(Fold::Add, b.load(b.param(1, DType::F32, n), r), {r}));
    const Kernel k = b.kernel();
    const Kernel better = expect_kept(k, buffers_for(k));
    // Of seven, copies are as good as four lanes and a rest.
    EXPECT_TRUE(n == 7 || has_binding(better, Binding::Vector) == (n > 2)) << n;
  }
}

TEST(Optimize, symbolic_sizes_keep_their_values) {
  KernelBuilder b;
  NodeRef n = b.g.variable("n", 1, 100);
  NodeRef i = b.g.range(n, 0), k = b.g.range(n, 1);
  NodeRef size = b.g.mul(n, n);
  const NodeRef dims[] = {size}, out_dims[] = {n};
  NodeRef x = b.load(b.g.param(1, DType::F32, dims), b.g.add(b.g.mul(i, n), k));
  b.store(b.g.param(0, DType::F32, out_dims), i, b.reduce(Fold::Add, x, {k}));
  const Kernel kernel = b.kernel();
  for (int64_t value : {1, 5, 16, 33, 50}) {
    Buffers buffers{zeros(DType::F32, value), numbers(DType::F32, value * value)};
    expect_kept(kernel, buffers, 512, {{"n", value}});
  }
}

/// Tiles overlap where they do not divide: what another tile has is not stored again.
TEST(Optimize, elements_read_and_written_are_stored_once) {
  KernelBuilder b;
  NodeRef i = b.range(37, 0), p = b.param(0, DType::F32, 37);
  b.store(p, i, b.g.add(b.load(p, i), b.load(b.param(1, DType::F32, 37), i)));
  const Kernel k = b.kernel();
  const Kernel better = expect_kept(k, buffers_for(k));
  EXPECT_TRUE(has_binding(better, Binding::Vector));
  for (NodeRef n : Toposort(better.sink)) EXPECT_TRUE(n->op != Op::Store || n->nsrc == 4);
}

/// A product that updates rows, of which there is a prime number, in tiles and in blocks.
TEST(Optimize, products_in_place_have_tiles) {
  KernelBuilder b;
  NodeRef i = b.range(521, 0), j = b.range(64, 1), r = b.range(24, 2);
  NodeRef at = b.g.add(b.g.mul(i, b.index(64)), j), p = b.param(0, DType::F32, 521 * 64);
  NodeRef x = b.load(b.param(1, DType::F32, 24 * 521), b.g.add(b.g.mul(r, b.index(521)), i));
  NodeRef y = b.load(b.param(2, DType::F32, 24 * 64), b.g.add(b.g.mul(r, b.index(64)), j));
  b.store(p, at, b.g.add(b.load(p, at), b.reduce(Fold::Add, b.g.mul(x, y), {r})));
  const Kernel k = b.kernel();
  const Kernel better = expect_kept(k, buffers_for(k));
  EXPECT_TRUE(has_binding(better, Binding::Vector));
  EXPECT_TRUE(has_binding(better, Binding::Unroll));
  for (NodeRef n : Toposort(better.sink)) EXPECT_TRUE(n->op != Op::Store || n->nsrc == 4);
}

/// What is left of rows behind vectors is done in smaller ones, down to single elements: in a loop
/// of its own it would have to be loaded before the vectors are stored and stored after them.
TEST(Optimize, rows_updated_in_place_by_a_column_have_tiles) {
  for (int64_t columns : {15, 31, 100, 1000, 1001}) {
    const int64_t rows = 64;
    KernelBuilder b;
    NodeRef i = b.range(rows, 0), j = b.range(columns, 1);
    NodeRef at = b.g.add(b.g.mul(i, b.index(columns)), j),
            p = b.param(0, DType::F32, rows * columns);
    b.store(p, at, b.g.mul(b.load(p, at), b.load(b.param(1, DType::F32, rows), i)));
    const Kernel k = b.kernel();
    for (int bits : {128, 256, 512}) {
      const Kernel better = expect_kept(k, buffers_for(k), bits);
      EXPECT_TRUE(has_binding(better, Binding::Vector));
      for (NodeRef n : Toposort(better.sink)) EXPECT_TRUE(n->op != Op::Store || n->nsrc == 3);
      EXPECT_NO_THROW(lower_kernel(better, target_with_bits(bits))) << columns;
    }
  }
}

TEST(Optimize, shifted_updates_in_place_are_left_alone) {
  KernelBuilder b;
  NodeRef i = b.range(63, 0), p = b.param(0, DType::F32, 64);
  b.store(p, i, b.load(p, b.g.add(i, b.index(1))));
  const Kernel k = b.kernel();
  const Kernel better = expect_kept(k, buffers_for(k));
  EXPECT_FALSE(has_binding(better, Binding::Vector));
  EXPECT_FALSE(has_binding(better, Binding::Core));
}

TEST(Optimize, scans_keep_their_loop) {
  KernelBuilder b;
  NodeRef i = b.range(32, 0), j = b.range(20, 1);
  NodeRef at = b.g.add(b.g.mul(j, b.index(32)), i);
  NodeRef sum = b.g.make(Op::Scan, DType::F32, {b.load(b.param(1, DType::F32, 640), at), j},
                         {static_cast<int64_t>(Fold::Add)});
  b.store(b.param(0, DType::F32, 640), at, sum);
  const Kernel k = b.kernel();
  const Kernel better = expect_kept(k, buffers_for(k));
  EXPECT_TRUE(has_binding(better, Binding::Vector));
}

TEST(Optimize, argmax_carries_its_state_through_the_loop) {
  for (bool along_rows : {false, true}) {
    KernelBuilder b;
    NodeRef i = b.range(33, 0), j = b.range(20, 1);
    NodeRef at =
        along_rows ? b.g.add(b.g.mul(i, b.index(20)), j) : b.g.add(b.g.mul(j, b.index(33)), i);
    NodeRef x = b.load(b.param(1, DType::F32, 660), at);
    NodeRef best = b.g.make(Op::Carry, DType::F32, {}, {0, 7}),
            where = b.g.make(Op::Carry, DType::I32, {}, {1, 7});
    NodeRef better_here = b.g.lt(best, x);
    const NodeRef src[] = {b.f32(-100), b.g.constant(Value::of(DType::I32, 0)),
                           b.g.where(better_here, x, best),
                           b.g.where(better_here, b.g.cast(j, DType::I32), where), j};
    const int64_t ints[] = {7, 0, 2, 0};
    NodeRef loop = b.g.make({Op::Loop, DType::Void, src, ints});
    b.store(b.param(0, DType::F32, 33), i, b.g.make(Op::Get, DType::F32, {loop}, {0}));
    b.store(b.param(2, DType::I32, 33), i, b.g.make(Op::Get, DType::I32, {loop}, {1}));
    const Kernel k = b.kernel();
    expect_kept(k, buffers_for(k));
  }
}

TEST(Optimize, equal_kernels_give_equal_text_and_threads_do_not_matter) {
  const Kernel k = matmul_kernel(100, 70, 30, false, true);
  Target two = target_with_bits(512), many = two;
  many.threads = 64;
  EXPECT_EQ(print_graph(optimize_kernel(k, two, {}).sink),
            print_graph(optimize_kernel(k, many, {}).sink));
}

TEST(Optimize, triangles_keep_their_values) {
  KernelBuilder b;
  NodeRef i = b.range(20, 0), k = b.g.range(b.g.add(i, b.index(1)), 1);
  NodeRef x = b.load(b.param(1, DType::F32, 400), b.g.add(b.g.mul(i, b.index(20)), k));
  b.store(b.param(0, DType::F32, 20), i, b.reduce(Fold::Add, x, {k}));
  const Kernel kernel = b.kernel();
  expect_kept(kernel, buffers_for(kernel));
}

// The copies of a reduction step stay together: the program runs eight registers' first step before
// any second one.
TEST(Optimize, registers_take_turns) {
  KernelBuilder b;
  NodeRef i = b.range(8, 0, Binding::Unroll), r = b.range(16, 1),
          u = b.range(4, 2, Binding::Unroll);
  NodeRef k = b.g.add(b.g.mul(r, b.index(4)), u);
  NodeRef x = b.load(b.param(1, DType::F32, 512), b.g.add(b.g.mul(i, b.index(64)), k));
  NodeRef y = b.load(b.param(2, DType::F32, 64), k);
  b.store(b.param(0, DType::F32, 8), i, b.reduce(Fold::Add, b.g.mul(x, y), {r, u}));
  const Kernel kernel = b.kernel();
  size_t first_steps = 0;
  for (NodeRef n : lower_kernel(kernel, target_with_bits(512)).code) {
    if (n->op != Op::MulAcc) continue;
    if (n->src(2)->op != Op::GetAcc) break;
    ++first_steps;
  }
  EXPECT_EQ(first_steps, 8U);
}

/// A flattened axis of a permuted array: summed, or copied.
TEST(Optimize, digits_of_flattened_axes_become_ranges) {
  for (bool summed : {true, false})
    for (const auto& [a, b, c] :
         {std::array<int64_t, 3>{4, 6, 32}, {3, 5, 7}, {16, 2, 9}, {2, 64, 3}, {1, 8, 8}}) {
      KernelBuilder k;
      const int64_t n = a * b * c;
      NodeRef r = k.range(n, 0);
      auto scaled = [&](NodeRef digit, int64_t by) { return k.g.mul(digit, k.index(by)); };
      NodeRef inner = k.g.mod(r, k.index(c)), middle = k.g.mod(k.g.idiv(r, k.index(c)), k.index(b)),
              outer = k.g.idiv(r, k.index(b * c));
      NodeRef at = k.g.add(k.g.add(scaled(inner, a * b), scaled(outer, b)), middle);
      NodeRef x = k.load(k.param(1, DType::F32, n), at);
      if (summed)
        k.store(k.param(0, DType::F32, 1), k.index(0), k.reduce(Fold::Add, x, {r}));
      else
        k.store(k.param(0, DType::F32, n), r, x);
      const Kernel kernel = k.kernel();
      for (int bits : {128, 512}) {
        OptimizeReport report;
        const Kernel better = optimize_kernel(kernel, target_with_bits(bits), {true, &report});
        expect_kept(kernel, buffers_for(kernel), bits);
        EXPECT_TRUE(a == 1 || joined(report.applied).find("split r0") == 0)
            << joined(report.applied);
      }
    }
}

/// Joined parts that begin at whole vectors: each vector reads one of them.
TEST(Optimize, masks_that_change_between_vectors_are_of_their_own_range) {
  for (const int64_t first : {64, 60}) {
    KernelBuilder k;
    NodeRef r = k.range(160, 0), in_first = k.g.lt(r, k.index(first));
    NodeRef x = k.g.make(Op::Load, DType::F32, {k.param(1, DType::F32, first), r, in_first});
    NodeRef y = k.g.make(Op::Load, DType::F32,
                         {k.param(2, DType::F32, 160 - first), k.g.sub(r, k.index(first)),
                          k.g.le(k.index(first), r)});
    k.store(k.param(0, DType::F32, 160), r, k.g.add(x, y));
    const Kernel kernel = k.kernel();
    OptimizeReport report;
    optimize_kernel(kernel, target_with_bits(512), {true, &report});
    expect_kept(kernel, buffers_for(kernel), 512);
    EXPECT_EQ(joined(report.applied).find("split r0 of 160 into 10 x 16") == 0, first == 64)
        << joined(report.applied);
  }
}

/// The loop inside all others moves the least.
TEST(Optimize, sums_run_along_memory_whatever_order_they_come_in) {
  for (const auto& order : {std::array<int64_t, 3>{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}}) {
    KernelBuilder b;
    NodeRef i = b.range(33, 0);
    const std::array<int64_t, 3> sizes{9, 17, 23}, strides{17 * 23, 23, 1};
    NodeRef at = b.g.mul(i, b.index(9 * 17 * 23));
    std::vector<NodeRef> ranges(3);
    for (size_t k = 0; k < 3; ++k) {
      ranges[k] = b.range(sizes[k], 1 + order[k]);
      // Not one walk: each row has an element that no loop comes by.
      at = b.g.add(at, b.g.mul(ranges[k], b.index(strides[k] + (k < 2 ? 1 : 0))));
    }
    const int64_t size = 33 * 9 * 17 * 23 + 100;
    NodeRef x = b.load(b.param(1, DType::F32, size), at);
    b.store(b.param(0, DType::F32, 33), i, b.reduce(Fold::Max, x, ranges));
    const Kernel kernel = b.kernel();
    expect_kept(kernel, buffers_for(kernel));
    OptimizeReport report;
    optimize_kernel(kernel, target_with_bits(512), {true, &report});
    EXPECT_EQ(joined(report.applied).find("move") == std::string::npos,
              order[0] == 0 && order[1] == 1)
        << joined(report.applied);
  }
}

/// Rows a page apart share a place in the first cache: of each line all is used at once.
double executed(const Kernel& kernel) {
  const Kernel better = expect_kept(kernel, buffers_for(kernel));
  return lower_kernel(better, target_with_bits(512)).flops;
}

/// out[i, j] = sum over k of a[i / rows, k] * b[k, j / columns].
Kernel repeated_product(int64_t n, int64_t rows, int64_t columns) {
  constexpr int64_t kTerms = 12;
  KernelBuilder b;
  Graph& g = b.g;
  NodeRef i = b.range(n * rows, 0), j = b.range(n * columns, 1), k = b.range(kTerms, 2);
  NodeRef row = g.idiv(i, b.index(rows)), column = g.idiv(j, b.index(columns));
  NodeRef x = b.load(b.param(1, DType::F32, n * kTerms), g.add(g.mul(row, b.index(kTerms)), k));
  NodeRef y = b.load(b.param(2, DType::F32, n * kTerms), g.add(g.mul(k, b.index(n)), column));
  b.store(b.param(0, DType::F32, n * n * rows * columns), g.add(g.mul(i, b.index(n * columns)), j),
          b.reduce(Fold::Add, g.mul(x, y), {k}));
  return b.kernel();
}

TEST(Optimize, sums_that_are_repeated_are_computed_once) {
  for (const int64_t n : {16, 30})
    for (const int64_t rows : {1, 2, 3})
      for (const int64_t columns : {1, 2, 3}) {
        const double once = executed(repeated_product(n, 1, 1));
        EXPECT_LE(executed(repeated_product(n, rows, columns)), 1.25 * once)
            << n << " " << rows << " " << columns;
      }
}

/// Sums of x / sqrt(v), where v varies along `axis` of three that lie in memory in order.
Kernel sum_of_quotients(const std::array<int64_t, 3>& sizes, size_t axis) {
  KernelBuilder b;
  Graph& g = b.g;
  const int64_t size = sizes[0] * sizes[1] * sizes[2];
  NodeRef c = b.range(3, 0), at = g.mul(c, b.index(size));
  std::vector<NodeRef> ranges;
  for (int64_t r = 0, stride = size; r < 3; ++r) {
    stride /= sizes[static_cast<size_t>(r)];
    ranges.push_back(b.range(sizes[static_cast<size_t>(r)], r + 1));
    at = g.add(at, g.mul(ranges.back(), b.index(stride)));
  }
  NodeRef v = b.load(b.param(2, DType::F32, 3 * sizes[axis]),
                     g.add(g.mul(c, b.index(sizes[axis])), ranges[axis]));
  NodeRef root = g.alu(Op::Sqrt, {g.mul(v, v)});
  NodeRef x = b.load(b.param(1, DType::F32, 3 * size), at);
  NodeRef value = g.mul(x, g.alu(Op::Div, {b.f32(1), root}));
  b.store(b.param(0, DType::F32, 3), c, b.reduce(Fold::Add, value, ranges));
  return b.kernel();
}

TEST(Optimize, sums_divide_once_for_what_shares_a_divisor) {
  for (const auto& sizes :
       {std::array<int64_t, 3>{9, 9, 16}, {9, 9, 15}, {48, 7, 7}, {5, 33, 12}, {12, 2, 33}})
    for (size_t axis = 0; axis < 3; ++axis) {
      const Kernel k = sum_of_quotients(sizes, axis);
      const auto all = static_cast<double>(sizes[0] * sizes[1] * sizes[2]);
      const auto few = static_cast<double>(sizes[axis]);
      const Kernel better = optimize_kernel(k, target_with_bits(512), {});
      EXPECT_LE(lower_kernel(better, target_with_bits(512)).flops, 4 * (2 * all + 3 * few))
          << sizes[0] << " " << sizes[1] << " " << sizes[2] << ", " << axis;
    }
}

TEST(Optimize, transposes_of_pages_go_by_squares) {
  for (auto [rows, columns] : {std::array<int64_t, 2>{64, 1024}, {2048, 32}, {48, 1000}}) {
    KernelBuilder b;
    NodeRef i = b.range(columns, 0), j = b.range(rows, 1);
    const int64_t n = rows * columns;
    b.store(b.param(0, DType::F32, n), b.g.add(b.g.mul(i, b.index(rows)), j),
            b.load(b.param(1, DType::F32, n), b.g.add(b.g.mul(j, b.index(columns)), i)));
    const Kernel kernel = b.kernel();
    const Kernel better = expect_kept(kernel, buffers_for(kernel));
    EXPECT_EQ(has_binding(better, Binding::Unroll), columns == 1024) << print_graph(better.sink);
  }
}

/// Rows laid in blocks of eight, by registers that cannot transpose: what comes next of the rows
/// goes next to what was stored.
TEST(Optimize, rows_put_in_blocks_are_walked_along) {
  for (const bool blocks : {true, false}) {
    KernelBuilder b;
    constexpr int64_t kLength = 256, kBlocks = 8, kEach = 8, kSize = kLength * kBlocks * kEach;
    NodeRef along = b.range(kLength, 0), block = b.range(kBlocks, 1), row = b.range(kEach, 2);
    const auto at = [&](NodeRef outer, int64_t length, NodeRef inner) {
      return b.g.add(b.g.mul(outer, b.index(length)), inner);
    };
    NodeRef x = b.load(b.param(1, DType::F32, kSize), at(at(block, kEach, row), kLength, along));
    NodeRef to = blocks ? at(at(block, kLength, along), kEach, row)
                        : at(at(along, kBlocks, block), kEach, row);  // lines far apart
    b.store(b.param(0, DType::F32, kSize), to, x);
    const Kernel kernel = b.kernel();
    OptimizeReport report;
    optimize_kernel(kernel, target_with_bits(256), {true, &report});
    EXPECT_EQ(joined(report.applied).find(" inside ") != std::string::npos, blocks)
        << joined(report.applied);
    expect_kept(kernel, {zeros(DType::F32, kSize), numbers(DType::F32, kSize)}, 256);
  }
}

/// The channels of images, put apart: few loops are left around places, of which each item has a
/// run instead of one, whose number would have to be taken apart.
TEST(Optimize, items_of_single_elements_are_runs) {
  Target target = target_with_bits(512);
  target.machine.native_bits = 256;  // gathers in vectors do not pay
  for (const int64_t images : {4, 8}) {
    KernelBuilder k;
    constexpr int64_t kChannels = 3, kPlaces = 448;
    const int64_t size = images * kChannels * kPlaces;
    NodeRef n = k.range(images, 0), c = k.range(kChannels, 1), p = k.range(kPlaces, 2);
    const auto at = [&](NodeRef outer, int64_t length, NodeRef inner) {
      return k.g.add(k.g.mul(outer, k.index(length)), inner);
    };
    NodeRef x = k.load(k.param(0, DType::F32, size), at(at(n, kPlaces, p), kChannels, c));
    k.store(k.param(1, DType::F32, size), at(at(n, kChannels, c), kPlaces, p), x);
    const Kernel better =
        expect_kept(k.kernel(), {numbers(DType::F32, size), zeros(DType::F32, size)}, target);
    EXPECT_FALSE(has_binding(better, Binding::Vector));
    int64_t items = 0, run = 0;
    for (NodeRef r : Toposort(better.sink)) {
      if (r->op != Op::Range) continue;
      (range_binding(r) == Binding::Core ? items : run) = r->src(0)->vmax;
    }
    EXPECT_GE(items, 64);
    EXPECT_GE(run, 32);
    EXPECT_EQ(items * run, size);
  }
}

/// Rows half a page apart share two places: where there are many, a line is gone before the next
/// column comes to it.
TEST(Optimize, rows_that_share_places_go_by_squares) {
  for (auto [rows, columns] : {std::array<int64_t, 2>{512, 512}, {512, 544}, {16, 512}}) {
    KernelBuilder b;
    NodeRef i = b.range(columns, 0), j = b.range(rows, 1);
    const int64_t n = rows * columns;
    NodeRef x = b.load(b.param(1, DType::F32, n), b.g.add(b.g.mul(j, b.index(columns)), i));
    b.store(b.param(0, DType::F32, n), b.g.add(b.g.mul(i, b.index(rows)), j),
            b.g.alu(Op::Exp2, {b.g.mul(x, x)}));
    const Kernel kernel = b.kernel();
    const Kernel better = expect_kept(kernel, buffers_for(kernel));
    EXPECT_EQ(has_binding(better, Binding::Unroll), rows == 512) << print_graph(better.sink);
  }
}

/// A vector that starts anywhere lies in two lines; the cost of a load says so.
TEST(Optimize, vectors_that_start_anywhere_cost_more) {
  auto cycles = [](int64_t offset) {
    KernelBuilder b;
    NodeRef i = b.range(64, 0), j = b.range(64, 1), k = b.range(64, 2);
    NodeRef at = b.g.add(b.g.add(b.g.mul(k, b.index(64)), j), b.index(offset));
    NodeRef x = b.load(b.param(1, DType::F32, 64 * 64 + 16), at);
    NodeRef y = b.load(b.param(2, DType::F32, 64 * 64), b.g.add(b.g.mul(i, b.index(64)), k));
    b.store(b.param(0, DType::F32, 64 * 64), b.g.add(b.g.mul(i, b.index(64)), j),
            b.reduce(Fold::Add, b.g.mul(x, y), {k}));
    const Kernel kernel = b.kernel();
    const optimize::KernelInfo info(kernel.sink);
    const Target target = target_with_bits(512);
    const optimize::CostModel model(info, target);
    optimize::Tiling tiling;
    tiling.ranges.resize(3, {});
    tiling.set(1, 16, 1);
    return model.total(tiling);
  };
  EXPECT_EQ(cycles(0), cycles(16));
  EXPECT_LE(cycles(16), cycles(8));
  EXPECT_LE(cycles(8), cycles(1));
}

TEST(Optimize, halved_vectors_cost_their_turns) {
  const Kernel kernel = matmul_kernel(64, 64, 64, false, false);
  const optimize::KernelInfo info(kernel.sink);
  optimize::Tiling tiling;
  tiling.ranges.resize(info.ranges.size(), {});
  tiling.set(0, 1, 8);
  tiling.set(1, 16, 2);
  auto cycles = [&](int native_bits) {
    Target target = target_with_bits(512);
    target.machine.native_bits = native_bits;
    return optimize::CostModel(info, target).total(tiling);
  };
  EXPECT_GT(cycles(256), 1.5 * cycles(512));
}

/// What L3 does not hold is streamed past the other operand block by block, of every layout and odd
/// numbers of tiles.
TEST(Optimize, streams_larger_than_l3_come_in_blocks) {
  Target target = target_with_bits(512);
  target.machine.caches = {{{1 << 10, 4, 128}, {4 << 10, 4, 25}, {64 << 10, 4, 15}}};
  const auto check = [&](int64_t m, int64_t n, int64_t k, bool transposed) {
    const Kernel kernel = matmul_kernel(m, n, k, transposed, false);
    OptimizeReport report;
    optimize_kernel(kernel, target, {true, &report});
    EXPECT_NE(joined(report.applied).find("outside"), std::string::npos) << joined(report.applied);
    expect_kept(kernel, buffers_for(kernel), target);
  };
  check(64, 192, 64, true);
  check(131, 96, 33, false);
  check(70, 200, 64, false);
}

/// A narrow path to L3 does not keep up with a tile: what is streamed stays in L2 then.
TEST(Optimize, streams_that_outrun_l3_come_in_blocks) {
  const Kernel kernel = matmul_kernel(256, 512, 64, false, false);
  const auto blocked = [&](double bytes_per_cycle) {
    Target target = target_with_bits(512);
    target.machine.caches = {{{4 << 10, 4, 128}, {64 << 10, 4, 25}, {8 << 20, 4, bytes_per_cycle}}};
    OptimizeReport report;
    optimize_kernel(kernel, target, {true, &report});
    return joined(report.applied).find("outside") != std::string::npos;
  };
  EXPECT_FALSE(blocked(100));
  EXPECT_TRUE(blocked(5));
}

/// Rows laid out in panels of a vector, each of which is elsewhere: some rows at once, so that what
/// is stored to a panel follows what was stored before.
TEST(Optimize, rows_copied_into_panels_are_copied_some_at_once) {
  const auto moves = [](int64_t rows, int64_t columns) {
    KernelBuilder b;
    Graph& g = b.g;
    NodeRef i = b.range(rows, 0), j = b.range(columns / 16, 1), l = b.range(16, 2);
    const auto at = [&](NodeRef x, int64_t y_size, NodeRef y) {
      return g.add(g.mul(g.add(g.mul(x, g.index(y_size)), y), g.index(16)), l);
    };
    NodeRef x = b.load(b.param(1, DType::F32, rows * columns), at(i, columns / 16, j));
    b.store(b.param(0, DType::F32, rows * columns), at(j, rows, i), x);
    const Kernel k = b.kernel();
    if (rows * columns < 1 << 15) expect_kept(k, buffers_for(k));
    OptimizeReport report;
    optimize_kernel(k, target_with_bits(512), {true, &report});
    return joined(report.applied).find(std::to_string(rows / 32) + " x 32") != std::string::npos;
  };
  EXPECT_TRUE(moves(128, 160));
  EXPECT_TRUE(moves(4096, 4096));
  EXPECT_FALSE(moves(32, 64));  // the panels lie in a page
}

TEST(Optimize, off_means_unchanged) {
  const Kernel k = matmul_kernel(32, 32, 32, false, false);
  EXPECT_EQ(print_graph(optimize_kernel(k, target_with_bits(512), {false, nullptr}).sink),
            print_graph(k.sink));
}

}  // namespace
}  // namespace weft
