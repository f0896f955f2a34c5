// Lowering: a kernel as a graph of loops becomes a linear program, a list of instructions in
// execution order.
#pragma once
#include "weft/graph/program.h"
#include "weft/isa/machine.h"

namespace weft {

struct Target;

/// The linear program of `kernel` for `target`, in the form docs/design/ir.md section 3 pins down.
/// The kernel is not changed: its graph is copied, and the program's graph holds only what the
/// program uses, so several targets may be lowered at once. Throws InternalError where the kernel
/// is not what section 2 allows.
LinearProgram lower_kernel(const Kernel& kernel, const Target& target);

/// `program` as instructions of the machine, over its registers: what is left to do is to encode
/// them. For targets with `machine_code` only.
MachineProgram lower_to_machine(const LinearProgram& program, const Target& target);

}  // namespace weft
