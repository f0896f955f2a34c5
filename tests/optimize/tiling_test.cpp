// What the cost model says about masks, windows and loops that carry state, and the tiles that
// follow from it.
#include "weft/optimize/tiling.h"
#include <algorithm>
#include <functional>
#include "tests/lower/kernels.h"
#include "weft/base/format.h"

#include "tests/optimize/kernels.h"

namespace weft {
namespace {

using namespace test;

/// Sums of 64 times three weights, which are left out beyond a border or a diagonal. The last one
/// is not there: what a mask leaves out must not be loaded.
double cycles_of_masked(bool border) {
  KernelBuilder b;
  NodeRef row = b.range(64, 0), i = b.range(64, 1), tap = b.range(3, 2);
  NodeRef moved = b.g.sub(b.g.add(i, tap), b.index(1));
  NodeRef inside = border ? b.g.logical_and(b.g.lt(b.index(-1), moved), b.g.lt(moved, b.index(64)))
                          : b.g.lt(i, row);
  NodeRef at = b.g.add(b.g.mul(row, b.index(3)), tap);
  NodeRef w = b.g.make(Op::Load, DType::F32, {b.param(1, DType::F32, 191), at, inside});
  b.store(b.param(0, DType::F32, 64 * 64), b.g.add(b.g.mul(row, b.index(64)), i),
          b.reduce(Fold::Add, w, {tap}));
  const Kernel kernel = b.kernel();
  const optimize::KernelInfo info(kernel.sink);
  const Target target = target_with_bits(512);
  optimize::Tiling tiling;
  tiling.ranges.resize(3, {});
  tiling.set(1, 16, 2);
  return optimize::CostModel(info, target).total(tiling);
}

TEST(Tiling, masks_are_tested_where_they_may_fail) {
  EXPECT_LT(3 * cycles_of_masked(true), cycles_of_masked(false));
}

optimize::Tiling chosen(const Kernel& kernel, const Target& target = target_with_bits(512)) {
  const optimize::KernelInfo info(kernel.sink);
  return optimize::choose_tiling(info, optimize::CostModel(info, target), target);
}

// out[i, j] = in[i] + j, of 8 columns: half a register of steps from the first one, and not 16 rows
// that are stored lane by lane. Not where places take uneven steps.
TEST(Tiling, numbers_of_places_are_one_vector) {
  const auto lanes = [](bool even) {
    KernelBuilder b;
    NodeRef i = b.range(1024, 0), j = b.range(8, 1);
    NodeRef place = even ? b.g.mul(j, b.index(3)) : b.g.mod(b.g.mul(j, b.index(3)), b.index(5));
    NodeRef number = b.g.make(Op::Cast, DType::I32, {place});
    b.store(b.param(0, DType::I32, 8192), b.g.add(b.g.mul(i, b.index(8)), j),
            b.g.make(Op::Add, DType::I32, {b.load(b.param(1, DType::I32, 1024), i), number}));
    const Kernel kernel = b.kernel();
    if (even) expect_kept(kernel, buffers_for(kernel));
    return chosen(kernel).ranges[1].lanes;
  };
  EXPECT_EQ(lanes(true), 8);
  EXPECT_EQ(lanes(false), 1);
}

// out[i, j] = in[i] on the diagonal, or a number there, and 0 elsewhere: vectors of a row, and not
// a test for each element.
TEST(Tiling, diagonals_are_vectors_of_their_rows) {
  for (const bool loaded : {true, false})
    for (const int64_t n : {17, 50, 100}) {
      KernelBuilder b;
      NodeRef i = b.range(n, 0), j = b.range(n, 1), met = b.g.eq(i, j);
      NodeRef zero = b.g.constant(Value::of(DType::F32, 0)),
              two = b.g.constant(Value::of(DType::F32, 2));
      NodeRef value = loaded ? b.g.make(Op::Load, DType::F32, {b.param(1, DType::F32, n), i, met})
                             : b.g.make(Op::Where, DType::F32, {met, two, zero});
      b.store(b.param(0, DType::F32, n * n), b.g.add(b.g.mul(i, b.index(n)), j), value);
      const Kernel kernel = b.kernel();
      expect_kept(kernel, buffers_for(kernel));
      EXPECT_EQ(chosen(kernel).ranges[1].lanes, 16) << n;
    }
}

// What is repeated is read in vectors where the machine interleaves them.
TEST(Tiling, copies_that_fill_what_is_stored_are_interleaved) {
  CpuFeatures avx512;
  for (const CpuFeature f : {CpuFeature::Avx2, CpuFeature::Fma, CpuFeature::Avx512f,
                             CpuFeature::Avx512bw, CpuFeature::Avx512dq, CpuFeature::Avx512vl})
    avx512.set(f, true);
  KernelBuilder b;
  NodeRef i = b.range(65536, 0), copy = b.range(2, 1);
  b.store(b.param(0, DType::F32, 131072), b.g.add(b.g.mul(i, b.index(2)), copy),
          b.load(b.param(1, DType::F32, 65536), i));
  const auto tiling = chosen(b.kernel(), make_target("x86", avx512, 2));
  EXPECT_EQ(tiling.ranges[0].lanes, 16);
  EXPECT_EQ(tiling.ranges[1].unroll, 2);
}

TEST(Tiling, windows_that_are_summed_share_what_they_cover) {
  KernelBuilder b;
  NodeRef c = b.range(16, 0), up = b.range(3, 1), i = b.range(16, 2), j = b.range(32, 3);
  NodeRef at =
      b.g.add(b.g.add(b.g.mul(c, b.index(18 * 32)), b.g.mul(b.g.add(i, up), b.index(32))), j);
  b.store(b.param(0, DType::F32, 48), b.g.add(b.g.mul(c, b.index(3)), up),
          b.reduce(Fold::Add, b.load(b.param(1, DType::F32, 16 * 18 * 32), at), {i, j}));
  const Kernel kernel = b.kernel();
  EXPECT_EQ(chosen(kernel).ranges[1].unroll, 3);
  expect_kept(kernel, buffers_for(kernel));
}

/// Sums over three rows of seven places each and 128 channels, of a tile of `places` by two vectors
/// of 64 columns, with the rows' copies side by side or in a loop; cycles for each place.
double cycles_of_window(int64_t places, bool copied) {
  KernelBuilder b;
  constexpr int64_t kPlaces = 168, kColumns = 64, kChannels = 128;
  NodeRef place = b.range(kPlaces, 0), o = b.range(kColumns, 1), row = b.range(3, 2),
          c = b.range(kChannels, 3);
  const auto at = [&](NodeRef i, NodeRef j, int64_t width) {
    return b.g.add(b.g.mul(i, b.index(width)), j);
  };
  NodeRef moved = b.g.add(place, b.g.mul(row, b.index(7)));
  NodeRef x = b.load(b.param(1, DType::F32, (kPlaces + 14) * kChannels), at(moved, c, kChannels));
  NodeRef w =
      b.load(b.param(2, DType::F32, 3 * kChannels * kColumns), at(at(c, row, 3), o, kColumns));
  b.store(b.param(0, DType::F32, kPlaces * kColumns), at(place, o, kColumns),
          b.reduce(Fold::Add, b.g.mul(x, w), {row, c}));
  const Kernel kernel = b.kernel();
  const optimize::KernelInfo info(kernel.sink);
  const Target target = target_with_bits(512);
  optimize::Tiling tiling;
  tiling.ranges.resize(4, {});
  tiling.set(0, 1, places);
  tiling.set(1, 16, 2);
  tiling.set(2, 1, copied ? 3 : 1);
  return optimize::CostModel(info, target).total(tiling);
}

/// Of 14 places seven are read again by the next copy of a row: they leave no registers for all 28
/// sums. Of 12 it is five, of 7 none.
TEST(Tiling, what_copies_of_a_window_read_again_has_registers) {
  EXPECT_GT(cycles_of_window(14, true), 1.5 * cycles_of_window(14, false));
  EXPECT_LT(cycles_of_window(12, true), 1.1 * cycles_of_window(12, false));
  EXPECT_LT(cycles_of_window(7, true), 1.1 * cycles_of_window(7, false));
}

/// One image of 112 x 112 results for each of 32 channels, which lie side by side.
Kernel depthwise_kernel(int64_t stride) {
  KernelBuilder b;
  const int64_t size = 112, channels = 32, width = stride * size + 2;
  NodeRef y = b.range(size, 0), x = b.range(size, 1), c = b.range(channels, 2), up = b.range(3, 3),
          left = b.range(3, 4);
  const auto at = [&](NodeRef row, NodeRef column, int64_t columns) {
    NodeRef place = b.g.add(b.g.mul(row, b.index(columns)), column);
    return b.g.add(b.g.mul(place, b.index(channels)), c);
  };
  const auto moved = [&](NodeRef i, NodeRef tap) {
    return b.g.add(b.g.mul(i, b.index(stride)), tap);
  };
  NodeRef image = b.load(b.param(1, DType::F32, width * width * channels),
                         at(moved(y, up), moved(x, left), width));
  NodeRef weight = b.load(b.param(2, DType::F32, 9 * channels), at(up, left, 3));
  b.store(b.param(0, DType::F32, size * size * channels), at(y, x, size),
          b.reduce(Fold::Add, b.g.mul(image, weight), {up, left}));
  return b.kernel();
}

/// Down a column every row is in another page, and what a window reads is never fetched ahead.
TEST(Tiling, windows_walk_along_rows_and_share_what_strides_leave_in_them) {
  for (const int64_t stride : {1, 2}) {
    const Kernel kernel = depthwise_kernel(stride);
    const optimize::KernelInfo info(kernel.sink);
    const Target target = target_with_bits(512);
    const optimize::CostModel model(info, target);
    optimize::Tiling some;
    some.ranges.resize(5, {});
    some.set(1, 1, 4);
    some.set(2, 16, 1);
    EXPECT_EQ(model.innermost(some), 1) << stride;
    const optimize::Tiling tiling = optimize::choose_tiling(info, model, target);
    EXPECT_GT(tiling.ranges[0].unroll * tiling.ranges[1].unroll, 1) << stride;
  }
}

/// (phase + place) / 2 takes two values however many its ranges have: the next row of an image's
/// gradient by steps of 2 reads half of what is new, and walking on along it takes the weights
/// once.
TEST(Tiling, windows_over_places_that_are_divided_share_what_they_cover) {
  KernelBuilder b;
  constexpr int64_t kRows = 8, kChannels = 512, kColumns = 64;
  NodeRef y = b.range(kRows, 0), phase = b.range(2, 1), o = b.range(kColumns, 2);
  NodeRef place = b.range(3, 3), c = b.range(kChannels, 4);
  const auto at = [&](NodeRef row, NodeRef column, int64_t width) {
    return b.g.add(b.g.mul(row, b.g.index(width)), column);
  };
  NodeRef row = b.g.add(y, b.g.idiv(b.g.add(phase, place), b.g.index(2)));
  NodeRef image = b.load(b.param(1, DType::F32, (kRows + 1) * kChannels), at(row, c, kChannels));
  NodeRef weight = b.load(b.param(2, DType::F32, 3 * kChannels * kColumns),
                          at(at(place, c, kChannels), o, kColumns));
  b.store(b.param(0, DType::F32, kRows * 2 * kColumns), at(at(y, phase, 2), o, kColumns),
          b.reduce(Fold::Add, b.g.mul(image, weight), {place, c}));
  const optimize::KernelInfo info(b.kernel().sink);
  const auto read = std::ranges::find_if(
      info.accesses, [](const optimize::Access& a) { return !a.quotients.empty(); });
  ASSERT_NE(read, info.accesses.end());
  EXPECT_EQ(read->quotients[0].stride, kChannels);
  EXPECT_EQ(read->quotients[0].values, 2);
  EXPECT_EQ(read->quotients[0].deps, optimize::bit(1) | optimize::bit(3));
}

/// A loop that carries state goes from line to line where it runs down columns: wide pieces of each
/// row are worth more than many. Along rows three of four work while one waits.
TEST(Tiling, scans_down_columns_take_several_vectors) {
  for (const bool down : {false, true}) {
    KernelBuilder b;
    const int64_t columns = 4096, rows = 256;
    NodeRef i = b.range(columns, 0), j = b.range(rows, 1);
    NodeRef at =
        down ? b.g.add(b.g.mul(j, b.index(columns)), i) : b.g.add(b.g.mul(i, b.index(rows)), j);
    NodeRef x = b.load(b.param(1, DType::F32, columns * rows), at);
    NodeRef sum = b.g.make(Op::Scan, DType::F32, {x, j}, {static_cast<int64_t>(Fold::Add)});
    b.store(b.param(0, DType::F32, columns * rows), at, sum);
    const auto tile = chosen(b.kernel()).ranges[0];
    EXPECT_EQ(tile.lanes > 1, down);
    EXPECT_TRUE(down ? tile.unroll > 1 : tile.unroll == 4) << tile.unroll;
  }
}

/// The place of each row's largest element: two passes, each of which waits for its own result.
optimize::Tiling::Of rows_of_argmax(int64_t rows, bool of_product) {
  KernelBuilder b;
  const int64_t columns = 4096;
  NodeRef i = b.range(rows, 0), j = b.range(columns, 1), k = b.range(columns, 2);
  const auto load = [&](int64_t slot, NodeRef column) {
    return b.load(b.param(slot, DType::F32, rows * columns),
                  b.g.add(b.g.mul(i, b.index(columns)), column));
  };
  const auto value = [&](NodeRef column) {
    NodeRef x = load(1, column);
    return of_product ? b.g.mul(x, load(2, column)) : x;
  };
  NodeRef most = b.reduce(Fold::Max, value(j), {j});
  NodeRef place =
      b.g.where(b.g.lt(value(k), most), b.f32(1e9), b.g.cast(b.g.cast(k, DType::I32), DType::F32));
  b.store(b.param(0, DType::F32, rows), i, b.reduce(Fold::Min, place, {k}));
  return chosen(b.kernel()).ranges[0];
}

/// Several rows at once work while others wait; but rows a power of two apart push each other's
/// lines out of L1, and from memory one stream is read ahead best.
TEST(Tiling, rows_that_share_nothing_wait_together) {
  EXPECT_GT(rows_of_argmax(256, false).unroll, 1);
  EXPECT_LE(rows_of_argmax(256, false).unroll, 4);
  EXPECT_EQ(rows_of_argmax(256, true).unroll, 1);
  EXPECT_EQ(rows_of_argmax(16384, false).unroll, 1);
}

/// A few rows by a matrix that no cache holds: one tile takes them all, so that what came from
/// memory is not read a second time, from L2, while memory waits.
TEST(Tiling, few_rows_share_what_comes_from_memory) {
  for (const int64_t rows : {2, 4}) {
    KernelBuilder b;
    const int64_t columns = 8192, depth = 2048;
    NodeRef i = b.range(rows, 0), j = b.range(columns, 1), k = b.range(depth, 2);
    const auto load = [&](int64_t slot, DType dtype, int64_t n, NodeRef row) {
      return b.load(b.param(slot, dtype, n * depth), b.g.add(b.g.mul(row, b.index(depth)), k));
    };
    NodeRef w = b.g.cast(load(2, DType::F16, columns, j), DType::F32);
    b.store(b.param(0, DType::F32, rows * columns), b.g.add(b.g.mul(i, b.index(columns)), j),
            b.reduce(Fold::Add, b.g.mul(load(1, DType::F32, rows, i), w), {k}));
    EXPECT_EQ(chosen(b.kernel()).ranges[0].unroll, rows);
  }
}

/// Rows of 16 bits in blocks of 16 columns: half a line of each row. Where rows are few, or far
/// from a power of two apart, L1 has the other half still when it is wanted.
TEST(Tiling, what_is_packed_is_read_in_whole_lines) {
  const auto blocks_at_once = [](int64_t rows, int64_t width) {
    KernelBuilder b;
    NodeRef i = b.range(rows, 0), block = b.range(64, 1), k = b.range(16, 2);
    const auto sum = [&](NodeRef x, int64_t by, NodeRef y) {
      return b.g.add(b.g.mul(x, b.index(by)), y);
    };
    NodeRef x = b.load(b.param(1, DType::U16, rows * width), sum(i, width, sum(block, 16, k)));
    b.store(b.param(0, DType::U16, rows * 1024), sum(sum(block, rows, i), 16, k), x);
    return chosen(b.kernel()).ranges[1].unroll;
  };
  EXPECT_GT(blocks_at_once(2048, 2048), 1);
  EXPECT_EQ(blocks_at_once(256, 1056), 1);
}

/// Eight images whose channels come one after the other, to planes: the bytes between two pixels of
/// a channel are other channels', not lines that are lost.
TEST(Tiling, pixels_are_lanes_not_images) {
  constexpr int64_t kImages = 8, kPixels = 50176, kChannels = 3,
                    all = kImages * kPixels * kChannels;
  for (const DType dtype : {DType::F32, DType::U8}) {
    KernelBuilder b;
    NodeRef image = b.range(kImages, 0), channel = b.range(kChannels, 1),
            pixel = b.range(kPixels, 2);
    const auto at = [&](NodeRef outer, int64_t n, NodeRef inner) {
      return b.g.add(b.g.mul(outer, b.index(n)), inner);
    };
    NodeRef x = b.load(b.param(1, dtype, all), at(at(image, kPixels, pixel), kChannels, channel));
    b.store(b.param(0, dtype, all), at(at(image, kChannels, channel), kPixels, pixel), x);
    const auto tiling = chosen(b.kernel());
    EXPECT_GE(tiling.ranges[2].lanes, 16) << name(dtype);
    EXPECT_EQ(tiling.ranges[0].size(), 1) << name(dtype);
  }
}

// ---- lengths that may be shorter than a tile

constexpr int64_t kLengths[] = {1, 2, 5, 7, 15, 16, 17, 31, 33, 50};

/// The same values, optimised, and lowered after that, whatever the length.
void expect_kept_for_lengths(const Kernel& kernel, const std::function<Buffers(int64_t)>& buffers) {
  for (const int64_t n : kLengths)
    for (const int bits : {128, 256, 512}) {
      SCOPED_TRACE(strformat("{} of {} bits", n, bits));
      const Buffers given = buffers(n);
      const Variables variables{{"n", n}};
      const LinearProgram program =
          lower_kernel(expect_kept(kernel, given, bits, variables), target_with_bits(bits));
      const int64_t items = program.core_size ? index_value(program.core_size, variables) : 1;
      EXPECT_EQ(run_kernel(kernel.sink, given, variables),
                run_program(program, given, variables, 0, items));
    }
}

std::string applied_to(const Kernel& kernel) {
  OptimizeReport report;
  optimize_kernel(kernel, target_with_bits(512), {true, &report});
  return joined(report.applied);
}

NodeRef sized(KernelBuilder& b, int64_t slot, NodeRef size) {
  const NodeRef dims[] = {size};
  return b.g.param(slot, DType::F32, dims);
}

/// Rows of any number by a matrix: tiles of rows, which overlap, or one row after the other.
TEST(Tiling, products_of_any_number_of_rows) {
  for (const int64_t depth : {8, 13}) {
    KernelBuilder b;
    const int64_t columns = 64;
    NodeRef n = b.g.variable("n", 1, 1000);
    NodeRef i = b.g.range(n, 0), j = b.range(columns, 1), k = b.range(depth, 2);
    NodeRef x =
        b.load(sized(b, 1, b.g.mul(n, b.index(depth))), b.g.add(b.g.mul(i, b.index(depth)), k));
    NodeRef y =
        b.load(b.param(2, DType::F32, depth * columns), b.g.add(b.g.mul(k, b.index(columns)), j));
    b.store(sized(b, 0, b.g.mul(n, b.index(columns))), b.g.add(b.g.mul(i, b.index(columns)), j),
            b.reduce(Fold::Add, b.g.mul(x, y), {k}));
    const Kernel kernel = b.kernel();
    EXPECT_NE(applied_to(kernel).find("another loop for r0 below"), std::string::npos);
    expect_kept_for_lengths(kernel, [&](int64_t rows) {
      return Buffers{zeros(DType::F32, rows * columns), numbers(DType::F32, rows * depth),
                     numbers(DType::F32, depth * columns)};
    });
  }
}

/// Sums of rows of any length beside which each element is: both are vectors, no access is masked.
TEST(Tiling, rows_of_any_length) {
  KernelBuilder b;
  NodeRef n = b.g.variable("n", 1, 1000), size = b.g.mul(n, b.index(8));
  NodeRef i = b.range(8, 0), j = b.g.range(n, 1), k = b.g.range(n, 2);
  NodeRef x = sized(b, 1, size);
  const auto at = [&](NodeRef column) { return b.g.add(b.g.mul(i, n), column); };
  NodeRef sum = b.reduce(Fold::Add, b.load(x, at(k)), {k});
  b.store(sized(b, 0, size), at(j), b.g.sub(b.load(x, at(j)), sum));
  const Kernel kernel = b.kernel();
  expect_kept_for_lengths(kernel, [](int64_t length) {
    return Buffers{zeros(DType::F32, 8 * length), numbers(DType::F32, 8 * length)};
  });
  const Target target = target_with_bits(512);
  const Kernel better = optimize_kernel(kernel, target, {});
  const LinearProgram program = lower_kernel(better, target);
  const auto masked = [](NodeRef made) { return made->op == Op::Store && made->nsrc > 3; };
  EXPECT_TRUE(std::ranges::none_of(program.code, masked)) << print_graph(better.sink);
}

/// What workers share is the loop that both the long and the short one are in.
TEST(Tiling, columns_of_any_length) {
  KernelBuilder b;
  NodeRef n = b.g.variable("n", 1, 1000);
  NodeRef i = b.g.range(n, 0), j = b.range(32, 1);
  NodeRef size = b.g.mul(n, b.index(32));
  NodeRef x = b.load(sized(b, 1, size), b.g.add(b.g.mul(j, n), i));
  b.store(sized(b, 0, size), b.g.add(b.g.mul(j, n), i), b.g.mul(x, x));
  const Kernel kernel = b.kernel();
  const Kernel better = optimize_kernel(kernel, target_with_bits(512), {});
  for (NodeRef r : Toposort(better.sink))
    if (r->op == Op::Range && range_binding(r) == Binding::Core) {
      EXPECT_TRUE(is_int_const(r->src(0), 32)) << print_graph(better.sink);
    }
  expect_kept_for_lengths(kernel, [](int64_t length) {
    return Buffers{zeros(DType::F32, 32 * length), numbers(DType::F32, 32 * length)};
  });
}

/// Columns of pairs in groups of 16: of the two registers that hold a group's lanes are permuted,
/// so that vectors are worth it though no two of them are neighbours.
TEST(Tiling, lanes_at_small_distances_fill_vectors) {
  constexpr int64_t kGroups = 32, kRows = 512, kLanes = 16;
  CpuFeatures cpu;
  for (const CpuFeature f : {CpuFeature::Avx2, CpuFeature::Fma, CpuFeature::Avx512f,
                             CpuFeature::Avx512bw, CpuFeature::Avx512dq, CpuFeature::Avx512vl})
    cpu.set(f, true);
  Target target = make_target("x86", cpu, 2);
  target.machine.native_bits = 256;  // lane by lane takes twice as long there
  for (const int64_t apart : {2, 3}) {
    KernelBuilder b;
    NodeRef group = b.range(kGroups, 0), row = b.range(kRows, 1), part = b.range(apart, 2),
            lane = b.range(kLanes, 3);
    const auto at = [&](NodeRef outer, int64_t n, NodeRef inner) {
      return b.g.add(b.g.mul(outer, b.index(n)), inner);
    };
    const int64_t all = kGroups * kRows * apart * kLanes;
    NodeRef column = at(group, kLanes, lane);
    NodeRef x =
        b.load(b.param(1, DType::F32, all), at(at(row, kGroups * kLanes, column), apart, part));
    b.store(b.param(0, DType::F32, all), at(at(at(group, kRows, row), apart, part), kLanes, lane),
            x);
    const Kernel kernel = b.kernel();
    EXPECT_TRUE(has_binding(optimize_kernel(kernel, target, {}), Binding::Vector)) << apart;
  }
}

/// Of two such ranges the inner one is cut; outer products and their transposes.
TEST(Tiling, squares_of_any_length) {
  for (const bool transposed : {false, true}) {
    KernelBuilder b;
    NodeRef n = b.g.variable("n", 1, 1000), size = b.g.mul(b.g.mul(n, n), b.index(3));
    NodeRef h = b.range(3, 0), i = b.g.range(n, 1), j = b.g.range(n, 2), k = b.range(4, 3);
    const auto at = [&](NodeRef row, NodeRef column, NodeRef width) {
      return b.g.add(b.g.mul(b.g.add(b.g.mul(h, n), row), width), column);
    };
    NodeRef four = b.index(4), rows = b.g.mul(n, b.index(12));
    NodeRef x = b.load(sized(b, 1, rows), at(i, k, four));
    NodeRef y = b.load(sized(b, 2, rows), at(j, k, four));
    b.store(sized(b, 0, size), transposed ? at(j, i, n) : at(i, j, n),
            b.reduce(Fold::Add, b.g.mul(x, y), {k}));
    expect_kept_for_lengths(b.kernel(), [](int64_t length) {
      return Buffers{zeros(DType::F32, 3 * length * length), numbers(DType::F32, 12 * length),
                     numbers(DType::F32, 12 * length)};
    });
  }
}

/// x @ y of a few rows and any number of columns, where `rows` are all or none.
Kernel some_columns(KernelBuilder& b, NodeRef rows) {
  NodeRef n = b.g.variable("n", 1, 1000);
  NodeRef i = b.g.range(rows, 0), j = b.g.range(n, 1), k = b.range(8, 2);
  NodeRef x = b.load(b.param(1, DType::F32, 12 * 8), b.g.add(b.g.mul(i, b.index(8)), k));
  NodeRef y = b.load(sized(b, 2, b.g.mul(n, b.index(8))), b.g.add(b.g.mul(k, n), j));
  b.store(sized(b, 0, b.g.mul(n, b.index(12))), b.g.add(b.g.mul(i, n), j),
          b.reduce(Fold::Add, b.g.mul(x, y), {k}));
  return b.kernel();
}
Buffers of_some_columns(int64_t n) {
  return {zeros(DType::F32, 12 * n), numbers(DType::F32, 12 * 8), numbers(DType::F32, 8 * n)};
}

/// Below a tile of several vectors, vectors; below a vector, one after the other.
TEST(Tiling, lengths_below_a_tile_fill_vectors) {
  KernelBuilder b;
  const Kernel kernel = some_columns(b, b.index(12));
  const std::string applied = applied_to(kernel);
  EXPECT_NE(applied.find("another loop for r1 below"), std::string::npos) << applied;
  EXPECT_NE(applied.find("below 16 iterations"), std::string::npos) << applied;
  expect_kept_for_lengths(kernel, of_some_columns);
}

/// Where there are no rows, or so many, tiles of rows need no other loop for fewer.
TEST(Tiling, none_or_all_rows_fill_tiles) {
  KernelBuilder b;
  NodeRef n = b.g.variable("n", 1, 1000);
  const Kernel kernel = some_columns(b, b.g.where(b.g.lt(n, b.index(7)), b.index(0), b.index(12)));
  const std::string applied = applied_to(kernel);
  EXPECT_EQ(applied.find("another loop for r0"), std::string::npos) << applied;
  EXPECT_NE(applied.find("split r0"), std::string::npos) << applied;
  expect_kept_for_lengths(kernel, of_some_columns);
}

/// Nothing is summed element by element where a length is a vector at least.
TEST(Tiling, folds_of_lengths_from_a_vector_on_end_in_one) {
  for (const int64_t least : {1, 16}) {
    KernelBuilder b;
    NodeRef i = b.range(40, 0), k = b.g.range(b.g.variable("n", least, 1000), 1);
    NodeRef x = b.load(b.param(1, DType::F32, 40'000), b.g.add(b.g.mul(i, b.index(1000)), k));
    b.store(b.param(0, DType::F32, 40), i, b.reduce(Fold::Add, b.g.mul(x, x), {k}));
    const Kernel kernel = b.kernel();
    OptimizeReport report;
    optimize_kernel(kernel, target_with_bits(512), {true, &report});
    const bool ends = std::ranges::any_of(
        report.applied, [](const std::string& s) { return s.starts_with("end r1 in a vector"); });
    EXPECT_EQ(ends, least == 16);
    const Buffers buffers = buffers_for(kernel);
    for (const int64_t n : {16, 17, 31, 32, 33, 63, 64, 100, 999, 1000})
      expect_kept(kernel, buffers, 512, {{"n", n}});
  }
}

}  // namespace
}  // namespace weft
