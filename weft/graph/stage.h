// STAGE: where a value is materialised, and which forms of that there are.
#pragma once
#include <cstdint>

#include "weft/base/small_vector.h"
#include "weft/graph/graph.h"

namespace weft {

/// Axes of a grid and of a group, as every interface to GPUs has them.
constexpr int64_t kLaunchAxes = 3;

/// Which memory holds the value.
enum class Space : uint8_t {
  Global,  ///< a buffer: the boundary of a kernel, which schedule/ makes
  Local    ///< memory that the work items of a group share
};
/// How long it is held.
enum class StageLifetime : uint8_t {
  Kernel  ///< for one iteration of the loops around the ranges
};

/// A legal combination. Whoever adds one adds the pass that lowers it.
struct StageForm {
  Space space;
  StageLifetime lifetime;
  int64_t most_buffers;  ///< more than one: the next value is written while this one is read
  bool strides;          ///< whether it may have a layout of its own
};
inline constexpr StageForm kStageForms[] = {
    {Space::Local, StageLifetime::Kernel, 2, true},  // lower/stage_local.cpp
};

/// Why no row of kStageForms has this Stage, or its strides do not keep elements apart; null where
/// it is legal.
const char* stage_problem(const NodeSpec& s);

/// What is wrong with a node of a program of groups; null where nothing is.
const char* local_problem(const NodeSpec& s);
const char* work_id_problem(const NodeSpec& s);
const char* barrier_problem(const NodeSpec& s);
const char* shuffle_problem(const NodeSpec& s);

/// A Stage as parts: strides of its ranges in memory, and how many elements that takes.
struct StageParts {
  NodeRef value;
  std::span<const NodeRef> ranges;
  Space space;
  SmallVector<int64_t, 4> strides;
  int64_t elements;  ///< of one buffer
  int64_t buffers;
};
StageParts stage_parts(NodeRef n);

}  // namespace weft
