// The slow ways to run a kernel (weft/trust/kernel_eval.h), by their names in tests.
#pragma once
#include "weft/trust/kernel_eval.h"

namespace weft::test {

using trust::Buffers;
using trust::evaluation_steps;
using trust::index_value;
using trust::run_kernel;
using trust::run_program;
using trust::Variables;

}  // namespace weft::test
