// How many operations the kernels of a schedule execute, and how many would do.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft::testing {

/// Arithmetic on floats in one step, as LinearProgram::flops counts it.
struct StepWork {
  std::string kernel;
  double executed;  ///< by the program that was made of the kernel
  double needed;    ///< every value once for each iteration of the ranges it depends on, with the
                    ///< optimiser's tiles, which may overlap
  double stores;    ///< elements written
};

struct Work {
  std::vector<StepWork> steps;
  double graph = 0;  ///< every element of every value of the tensor graph once
  double executed() const;
};

Work count_work(std::span<const NodeRef> values, const Target& target);

}  // namespace weft::testing
