// Kernel packs: the machine code of kernels that were compiled together, as a file for the next
// process that asks for the same ones.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/options.h"
#include "weft/device/item_cost.h"
#include "weft/device/object_cache.h"
#include "weft/run/translate.h"

namespace weft {

/// What a kernel needs to be loaded and launched: its code, and of its program all but the
/// instructions.
struct PackedKernel {
  LinearProgram program;
  std::vector<LoopCost> costs;  ///< over program.variables
  std::string code;
};

struct PackedFor {
  NodeRef sink;
  bool distinct;  ///< no buffer is bound to two slots
};
/// Of the kernels, the machine, and the code that compiles them.
ObjectKey key_of_pack(std::span<const PackedFor> kernels, const Target& target,
                      const Options& options);

/// Costs are found in the program's instructions.
std::string pack_kernels(std::span<const Translation* const> kernels);

/// Nothing where `data` is no pack of `count` kernels; sizes in it are checked, code is not.
std::optional<std::vector<PackedKernel>> unpack_kernels(std::string_view data, size_t count);

}  // namespace weft
