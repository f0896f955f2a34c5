// Target: what a machine and its renderer can do, as data. Stages ask it; nobody switches on names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/small_vector.h"
#include "weft/dtype/dtype.h"
#include "weft/graph/op.h"
#include "weft/target/cpu_features.h"
#include "weft/target/dtype_set.h"
#include "weft/target/machine.h"
#include "weft/target/work_groups.h"

namespace weft {

/// `op` is an instruction (or a short fixed expression) for these result dtypes; comparisons and
/// casts are listed by the dtype of their first operand.
struct NativeOp {
  Op op;
  DTypeSet dtypes;
  bool needs_fma = false, needs_avx512 = false;
};

/// An operation that multiplies several numbers at once: `op` on words of 32 bits, each `depth`
/// neighbours along a sum, and what is summed so far.
///
/// Where it has tiles it multiplies matrices of as many rows as columns: of words as `words` does,
/// the left operand's rows along the sum, the right one's down it.
struct MatrixUnit {
  Op op;
  DType left, right, sum;
  int depth;
  Op words = op;      ///< what it does with each pair of words
  int tile = 0;       ///< rows and columns of its operands and its sum; 0: it has no tiles
  int registers = 0;  ///< of a whole tile each
};

struct Target {
  std::string name;      ///< row of the target table: "c", "x86", "opencl"
  std::string renderer;  ///< row of the renderer table; empty where programs are run as they are
  bool machine_code = false;  ///< kernels are lowered to the machine's own instructions
  int vector_bits = 0;        ///< width of one vector register; 0: scalars only
  int vector_registers = 0;
  int max_lanes = 1;   ///< most lanes a value may have (values wider than a register are split)
  int max_unroll = 1;  ///< most copies of a loop body worth making
  int threads = 1;     ///< workers that a core range is spread over
  /// Items of a core range that keep the machine busy: loops beyond them stay inside of an item. Of
  /// the kind of machine, because code may not depend on how many threads there are.
  int64_t enough_items = 64;
  int64_t most_buffers = INT64_MAX;  ///< of one kernel
  bool fma = false;                  ///< mulacc on floats is one instruction
  /// Sums are taken in their written order and products rounded, so that every machine gives the
  /// same bits: WEFT_DETERMINISTIC.
  bool canonical = false;
  CpuFeatures cpu;    ///< of the machine kernels run on
  Machine machine;    ///< its caches and pipes
  WorkGroups groups;  ///< what may be launched, where work items run in groups
  std::span<const NativeOp> native_ops;
  SmallVector<MatrixUnit, 2> matrix_units;
  DTypeSet dtypes = ~DTypeSet{0};  ///< that the machine has, in memory or in arithmetic

  /// True when a linear program may hold `op` on `dtype`: the result's for most ops, the first
  /// operand's for comparisons and casts. f16 and bf16 are storage: they are loaded, stored, cast,
  /// moved (where, vec, lane, splat, bitcast) and nothing else.
  bool native(Op op, DType dtype) const;
  /// True where lanes of two registers are brought into any order by one instruction, so that rows
  /// are worth loading for what lies down their columns.
  bool permutes_pairs(DType dtype) const;
  /// Lanes of one register: 16 for f32 on AVX-512; 1 without vectors.
  int lanes(DType dtype) const;
  /// The unit whose tiles multiply words as `words` does, or as it does with `swapped` operands;
  /// null where there is none.
  const MatrixUnit* tile_unit(Op words, bool swapped = false) const;
  /// Differs between targets whose code may differ: part of every kernel cache's key. Does not
  /// depend on `threads`, because code does not either.
  uint64_t key() const;
};

/// The row called `name` for a CPU with these features, the default Machine; unknown names are an
/// Error listing the rows.
Target make_target(std::string_view name, const CpuFeatures& cpu, int threads);
/// A DeviceError for `device` where this context's machine cannot run the target's code.
void check_features(std::string_view target, std::string_view device, Context& context);
/// For this context's machine and number of threads; with WEFT_DETERMINISTIC for the default
/// Machine whatever runs it.
Target make_target(std::string_view name, Context& context);

}  // namespace weft
