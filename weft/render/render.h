// render(): a linear program becomes text for a compiler, by the renderer table. Pure text: no
// device is needed.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weft/graph/program.h"
#include "weft/rewrite/pass.h"
#include "weft/target/target.h"

namespace weft {

struct RenderOptions {
  /// Parameters in different slots never overlap. False when the same buffer is bound twice: then
  /// the text promises the compiler nothing.
  bool distinct_params = true;
};

/// A linear program on its way to text.
struct RenderState {
  const LinearProgram& program;
  const Target& target;
  std::string_view entry;
  const RenderOptions& options;
  std::string written = {};

  std::string_view name() const { return program.name; }
  PassView view() const;
  std::string text() const;
  StateParts parts() const;
};

/// In order.
std::span<const Pass<RenderState>> render_passes();

/// "k_<index>_<name>", the name reduced to [a-z0-9_]: what render() calls the index-th kernel.
std::string entry_name(size_t index, std::string_view kernel_name);

/// One program as self-contained text that defines the function `entry` (target/kernel_abi.h).
/// Texts may be joined in any order and number as long as entries differ.
std::string render(const LinearProgram& program, const Target& target, std::string_view entry,
                   const RenderOptions& options = {});

/// All of them in one text, entries by entry_name().
std::string render(std::span<const LinearProgram> programs, const Target& target,
                   const RenderOptions& options = {});

}  // namespace weft
