#include "weft/target/target.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "weft/base/context.h"
#include "weft/base/cpu_count.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/names.h"

namespace weft {

namespace {

constexpr DTypeSet kBool = dtype_bit(DType::Bool);
constexpr DTypeSet kHalves = dtype_set({DType::F16, DType::BF16});
constexpr DTypeSet kFloats = dtype_set({DType::F32, DType::F64});
constexpr DTypeSet kInts = dtype_set(
    {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64});
constexpr DTypeSet kWideInts = dtype_set({DType::I64, DType::U64});
constexpr DTypeSet kArithmetic = kBool | kInts | kFloats;
constexpr DTypeSet kStorage = kArithmetic | kHalves;

// What C and the interpreter have; the rest (exp2, log2, sin, idiv, mod) lower/ decomposes.
constexpr std::array kHostOps = std::to_array<NativeOp>({
    {Op::Neg, kArithmetic},      {Op::Not, kBool | kInts}, {Op::Sqrt, kFloats},
    {Op::Trunc, kFloats},        {Op::Cast, kStorage},     {Op::Bitcast, kStorage},
    {Op::Add, kArithmetic},      {Op::Mul, kArithmetic},   {Op::Div, kFloats},
    {Op::CDiv, kInts},           {Op::CMod, kInts},        {Op::Max, kArithmetic},
    {Op::Min, kArithmetic},      {Op::Lt, kArithmetic},    {Op::Le, kArithmetic},
    {Op::Eq, kArithmetic},       {Op::Ne, kArithmetic},    {Op::And, kBool | kInts},
    {Op::Or, kBool | kInts},     {Op::Xor, kBool | kInts}, {Op::Shl, kBool | kInts},
    {Op::Shr, kBool | kInts},    {Op::Where, kStorage},    {Op::MulAcc, kBool | kInts},
    {Op::MulAcc, kFloats, true},
});
// What our machine code has besides: vpshufb, and with AVX-512 exponents. It divides integers of 64
// bits alone, one by one.
constexpr auto kX86Ops = [] {
  std::array<NativeOp, kHostOps.size() + 6> ops{};
  NativeOp* end = std::ranges::copy(kHostOps, ops.data()).out;
  for (NativeOp& o : ops)
    if (o.op == Op::CDiv || o.op == Op::CMod) o.dtypes = kWideInts;
  for (const Op op : {Op::Lookup4, Op::DotPairs}) *end++ = {op, dtype_bit(DType::U32)};
  *end++ = {Op::Rint, kFloats};
  for (const Op op : {Op::Ldexp, Op::Logb, Op::Mantissa})
    *end++ = {.op = op, .dtypes = kFloats, .needs_avx512 = true};
  return ops;
}();

// What PTX has besides: cvt.rni.
constexpr auto kPtxOps = [] {
  std::array<NativeOp, kHostOps.size() + 1> ops{};
  *std::ranges::copy(kHostOps, ops.data()).out = {Op::Rint, kFloats};
  return ops;
}();

// What WGSL has, and what the text adds to it: 64-bit integers as two words, smaller ones cut to
// their width. Its fma may round twice, its max may drop NaN.
constexpr DTypeSet kWgslFloat = dtype_bit(DType::F32);
constexpr DTypeSet kWgslNumbers = kInts | kWgslFloat;
constexpr DTypeSet kWgslStorage = kStorage & ~dtype_bit(DType::F64);
constexpr NativeOp kWgslOps[] = {
    {Op::Neg, kBool | kWgslNumbers},
    {Op::Not, kBool | kInts},
    {Op::Sqrt, kWgslFloat},
    {Op::Trunc, kWgslFloat},
    {Op::Cast, kWgslStorage},
    {Op::Bitcast, kWgslStorage},
    {Op::Add, kBool | kWgslNumbers},
    {Op::Mul, kBool | kWgslNumbers},
    {Op::Div, kWgslFloat},
    {Op::CDiv, kInts},
    {Op::CMod, kInts},
    {Op::Max, kBool | kInts},
    {Op::Min, kBool | kInts},
    {Op::Lt, kBool | kWgslNumbers},
    {Op::Le, kBool | kWgslNumbers},
    {Op::Eq, kBool | kWgslNumbers},
    {Op::Ne, kBool | kWgslNumbers},
    {Op::And, kBool | kInts},
    {Op::Or, kBool | kInts},
    {Op::Xor, kBool | kInts},
    {Op::Shl, kBool | kInts},
    {Op::Shr, kBool | kInts},
    {Op::Where, kWgslStorage},
    {Op::MulAcc, kBool | kInts},
};

// Vector registers of the host.
struct VectorRow {
  bool (*has)(const CpuFeatures&);
  int bits, registers;
};

bool has_avx512(const CpuFeatures& cpu) {
  // The foundation, plus what masks and narrow integers need: every server since Skylake.
  return cpu.has(CpuFeature::Avx512f) && cpu.has(CpuFeature::Avx512bw) &&
         cpu.has(CpuFeature::Avx512dq) && cpu.has(CpuFeature::Avx512vl);
}

constexpr VectorRow kVectorRows[] = {
    {has_avx512, 512, 32},
    {[](const CpuFeatures& cpu) { return cpu.has(CpuFeature::Avx2); }, 256, 16},
    {[](const CpuFeatures&) { return true; }, 128, 16},
};

// What selection takes for granted.
constexpr CpuFeature kX86Needs[] = {CpuFeature::Avx2, CpuFeature::Fma, CpuFeature::F16c,
                                    CpuFeature::Bmi2};

/// Matrix units of the host: there where the CPU has any of these features.
struct UnitRow {
  MatrixUnit unit;
  CpuFeature any[2];
};

// Subnormal numbers are 0 to vdpbf16ps, and it rounds products and sums one by one (Intel,
// "Software Developer's Manual", volume 2, VDPBF16PS).
constexpr UnitRow kUnitRows[] = {
    {{Op::Dot2, DType::BF16, DType::BF16, DType::F32, 2},
     {CpuFeature::Avx512bf16, CpuFeature::Avx512bf16}},
    {{Op::Dot4, DType::U8, DType::I8, DType::I32, 4},
     {CpuFeature::Avx512vnni, CpuFeature::AvxVnni}},
    // Where bytes have no unit they are multiplied by this one, too.
    {{Op::Dot2I16, DType::I16, DType::I16, DType::I32, 2}, {CpuFeature::Avx2, CpuFeature::Avx2}},
    // The manual's volume 1, chapter "Programming with Intel AMX": palette 1. tdpbf16ps takes
    // subnormal numbers for 0, too.
    {{Op::TileDot2, DType::BF16, DType::BF16, DType::F32, 2, Op::Dot2, 16, 8},
     {CpuFeature::AmxBf16, CpuFeature::AmxBf16}},
    {{Op::TileDot4, DType::U8, DType::I8, DType::I32, 4, Op::Dot4, 16, 8},
     {CpuFeature::AmxInt8, CpuFeature::AmxInt8}},
    {{Op::TileDot4Signed, DType::I8, DType::U8, DType::I32, 4, Op::Dot4, 16, 8},
     {CpuFeature::AmxInt8, CpuFeature::AmxInt8}},
};

// Words of one or two registers: what the shuffles of CUDA C++ ("Warp Shuffle Functions") and HIP
// take.
constexpr DTypeSet kShuffled =
    dtype_set({DType::I32, DType::U32, DType::F32, DType::I64, DType::U64, DType::F64});
constexpr DTypeSet kShuffled32 = dtype_set({DType::I32, DType::U32, DType::F32});

// Sizes that every device of the kind has; a driver that knows its device's writes those over them.
// OpenCL 1.2, table 4.3: the least a device may have, but for the number of items, of which it may
// have one only, and for the grid, which the size_t of the host bounds.
constexpr WorkGroups kOpenclGroups = {
    {INT32_MAX, INT32_MAX, INT32_MAX}, {64, 64, 64}, 64, 1, 32 << 10, 32, 4};
// CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
constexpr WorkGroups kCudaGroups = {
    {INT32_MAX, 65535, 65535}, {1024, 1024, 64}, 1024, 32, 48 << 10, 32, 4, 8, kShuffled};
// HIP's documentation, "Hardware features": LDS of 64 KiB in banks of 4 bytes, waves of RDNA, which
// are halves of CDNA's.
constexpr WorkGroups kHipGroups = {
    {INT32_MAX, 65535, 65535}, {1024, 1024, 1024}, 1024, 32, 64 << 10, 32, 4, 8, kShuffled};
// Metal Feature Set Tables: threads and memory of a threadgroup on every Apple GPU since A11. Metal
// Shading Language, "SIMD-Group Functions".
constexpr WorkGroups kMetalGroups = {{INT32_MAX, INT32_MAX, INT32_MAX},
                                     {1024, 1024, 1024},
                                     1024,
                                     32,
                                     32 << 10,
                                     32,
                                     4,
                                     8,
                                     kShuffled32};
// WebGPU, "Limits": the default of every limit, which each adapter has. Elements are whole words,
// as WGSL's types are; waves differ, and 32 is a multiple or a divisor of each.
constexpr WorkGroups kWgslGroups = {
    {65535, 65535, 65535}, {256, 256, 64}, 256, 32, 16 << 10, 32, 4, 32};

struct TargetRow {
  std::string_view name, renderer;
  std::span<const NativeOp> ops;
  bool host_vectors;  // vector width from kVectorRows, else the fixed one below
  int vector_bits, vector_registers, max_lanes, max_unroll;
  bool always_fma, machine_code;
  std::span<const CpuFeature> needs = {};
  DTypeSet lacks = 0;
  WorkGroups groups = {};
  int64_t enough_items = 64;
  double loads = 0;                                   // Machine::loads, where it is not the host's
  const std::array<CacheLevel, 3>* caches = nullptr;  // likewise
  int64_t most_buffers = INT64_MAX;
};

// Of a large GPU, of 132 multiprocessors of 2048 items each: every loop that may be shared. With
// 2^20 and 4096 (H200): permuted heads 8 x 1024 x 12 x 64 52 and 155 us; with 2^20, 4096 and 64 a
// convolution of 64 -> 64 of 56 by 3 x 3, batch 32, 1.5, 2.8 and 45.9 ms.
constexpr int64_t kGpuItems = 1 << 22;
// What such a multiprocessor has near it, and what blocks of a schedule are cut for: with the L2 of
// all of them (60 MiB) as the second, a weight's gradient of 64 -> 64 of 56 by 3 x 3, batch 32,
// takes 22.5 ms, with this 2.0 and less.
constexpr std::array<CacheLevel, 3> kGpuCaches = {
    {{128 << 10, 16, 128}, {2 << 20, 16, 64}, {32 << 20, 16, 32}}};

// "CUDA C++ Programming Guide", "Function Parameters": 4 KiB of arguments on every GPU, of which
// buffers and variables are 8 bytes each; a few places are left to variables.
constexpr int64_t kCudaBuffers = 480;

/// NVIDIA's, with the text in this language.
constexpr TargetRow cuda_like(std::string_view name, std::span<const NativeOp> ops) {
  return {.name = name,
          .renderer = name,
          .ops = ops,
          .host_vectors = false,
          .vector_bits = 0,
          .vector_registers = 32,
          .max_lanes = 1,
          .max_unroll = 16,
          .always_fma = true,
          .machine_code = false,
          .groups = kCudaGroups,
          .enough_items = kGpuItems,
          .caches = &kGpuCaches,
          .most_buffers = kCudaBuffers};
}

// Work items of GPUs compute with scalars: neighbours are what their vectors are made of.
// interp gains from long vectors whatever the host: an instruction is dispatched once for all
// lanes.
constexpr TargetRow kTargets[] = {
    {"c", "c", kHostOps, true, 0, 0, 64, 64, false, false},
    {"interp", "", kHostOps, false, 512, 32, 64, 16, true, false},
    {"x86", "x86", kX86Ops, true, 0, 0, 64, 64, true, true, kX86Needs},
    {"opencl", "opencl", kHostOps, false, 0, 32, 1, 16, true, false, {}, 0, kOpenclGroups},
    cuda_like("cuda", kHostOps),
    cuda_like("ptx", kPtxOps),
    {"hip", "hip", kHostOps, false, 0, 32, 1, 16, true, false, {}, 0, kHipGroups},
    {"metal",
     "metal",
     kHostOps,
     false,
     0,
     32,
     1,
     16,
     true,
     false,
     {},
     dtype_bit(DType::F64),
     kMetalGroups},
    // Registers, loads and items as GPUs have them: CUDA's guide, "Technical Specifications per
    // Compute Capability", has up to 255 registers of a thread and "Arithmetic Instructions" 128
    // multiply-adds a cycle beside 32 lanes of load and store units.
    {"wgsl",
     "wgsl",
     kWgslOps,
     false,
     0,
     96,
     1,
     16,
     false,
     false,
     {},
     dtype_bit(DType::F64),
     kWgslGroups,
     4096,
     0.5},
};

/// What the row says of its machine is not the host's.
void keep_own_machine(const TargetRow& row, Machine& machine) {
  if (row.loads > 0) machine.loads = row.loads;
  if (row.caches) machine.caches = *row.caches;
}

const TargetRow& find_row(std::string_view name) {
  for (const TargetRow& row : kTargets)
    if (row.name == name) return row;
  std::vector<std::string_view> names;
  std::string list;
  for (const TargetRow& row : kTargets) {
    names.push_back(row.name);
    append_format(list, "{}{}", list.empty() ? "" : ", ", row.name);
  }
  fail("target", "there is no target \"{}\"{}; targets are {}", name, did_you_mean(name, names),
       list);
}

}  // namespace

Target make_target(std::string_view name, const CpuFeatures& cpu, int threads) {
  const TargetRow& row = find_row(name);
  Target t;
  t.name = row.name;
  t.renderer = row.renderer;
  t.machine_code = row.machine_code;
  t.vector_bits = row.vector_bits;
  t.vector_registers = row.vector_registers;
  t.max_lanes = row.max_lanes;
  t.max_unroll = row.max_unroll;
  t.threads = threads;
  t.cpu = cpu;
  t.fma = row.always_fma || (cpu.has(CpuFeature::Fma) && cpu.has(CpuFeature::Avx2));
  t.native_ops = row.ops;
  t.dtypes = ~row.lacks;
  t.groups = row.groups;
  t.enough_items = row.enough_items;
  t.most_buffers = row.most_buffers;
  if (row.loads > 0) t.machine.loads = row.loads;
  if (row.host_vectors) {
    const VectorRow* vectors = std::find_if(std::begin(kVectorRows), std::end(kVectorRows),
                                            [&](const VectorRow& v) { return v.has(cpu); });
    t.vector_bits = vectors->bits;
    t.vector_registers = vectors->registers;
  }
  if (row.machine_code)
    for (const UnitRow& u : kUnitRows)
      if (cpu.has(u.any[0]) || cpu.has(u.any[1])) t.matrix_units.push_back(u.unit);
  return t;
}

void check_features(std::string_view target, std::string_view device, Context& context) {
  const CpuFeatures& cpu = CpuFeatures::of(context);
  for (CpuFeature f : find_row(target).needs)
    if (!cpu.has(f))
      fail_device(
          "open", ENOSYS, device,
          "the CPU lacks AVX2, FMA, F16C or BMI2, which our machine code uses (it has: {}); "
          "use CPU:C or CPU:INTERP",
          cpu.text());
}

Target make_target(std::string_view name, Context& context) {
  const int64_t asked = context.options().threads;
  Target t = make_target(name, CpuFeatures::of(context),
                         asked > 0 ? static_cast<int>(asked) : available_cpus());
  t.canonical = context.options().deterministic;
  t.fma = t.fma && !t.canonical;
  if (t.canonical) t.matrix_units = {};
  if (t.canonical) return t;
  // What takes an interpreter's time are not its host's pipes: its plans are the same everywhere.
  if (!t.renderer.empty()) t.machine = Machine::of(context);
  keep_own_machine(find_row(name), t.machine);
  return t;
}

bool Target::native(Op op, DType dtype) const {
  // An index has the width lower/ gives it.
  if (is_index(dtype)) dtype = DType::I64;
  if (has_trait(op, kWords))
    return std::any_of(matrix_units.begin(), matrix_units.end(),
                       [&](const MatrixUnit& u) { return u.op == op && u.sum == dtype; });
  return std::any_of(native_ops.begin(), native_ops.end(), [&](const NativeOp& n) {
    return n.op == op && (n.dtypes & dtype_bit(dtype)) != 0 && (fma || !n.needs_fma) &&
           (vector_bits == 512 || !n.needs_avx512);
  });
}

const MatrixUnit* Target::tile_unit(Op words, bool swapped) const {
  const MatrixUnit* pairs = nullptr;  // comes before those that do the same with tiles
  for (const MatrixUnit& u : matrix_units) {
    if (u.op == words) pairs = &u;
    if (u.tile > 0 && u.words == words && pairs && u.left == (swapped ? pairs->right : pairs->left))
      return &u;
  }
  return nullptr;
}

// AVX-512's vpermt2d and vpermt2w; vpermt2b came later.
bool Target::permutes_pairs(DType dtype) const {
  return machine_code && vector_bits == 512 && !is_bool(dtype) &&
         (bits(dtype) >= 16 || cpu.has(CpuFeature::Avx512vbmi));
}

int Target::lanes(DType dtype) const { return std::max(1, vector_bits / bits(dtype)); }

uint64_t Target::key() const {
  uint64_t h = hash_text(name);
  for (const uint64_t part :
       {static_cast<uint64_t>(vector_bits), cpu.bits(), uint64_t{fma}, uint64_t{canonical},
        uint64_t{dtypes}, machine.key(), groups.key(), static_cast<uint64_t>(enough_items),
        static_cast<uint64_t>(most_buffers)})
    h = hash_combine(h, part);
  return h;
}

}  // namespace weft
