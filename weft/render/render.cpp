#include "weft/render/render.h"

#include "weft/base/error.h"
#include "weft/render/c.h"
#include "weft/render/wgsl.h"

namespace weft {

namespace {

const CDialect& dialect_of(const Target& target) {
  if (const CDialect* dialect = find_dialect(target.renderer)) return *dialect;
  internal_error("render", "target {} has no renderer", target.name);
}

/// Said here, before a compiler says it in its own way.
void check_dtypes(const LinearProgram& program, const Target& target) {
  for (NodeRef n : program.code) {
    if (n->dtype == DType::Void || is_index(n->dtype) || (target.dtypes & dtype_bit(n->dtype)))
      continue;
    fail("dtype",
         "kernel {} computes with {}, which the machine of target {} does not have; cast to "
         "another dtype, or compute it on another device",
         program.name, name(n->dtype), target.name);
  }
}

}  // namespace

std::string entry_name(size_t index, std::string_view kernel_name) {
  std::string name = strformat("k_{}_", index);
  for (char c : kernel_name.substr(0, 64)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    name += plain ? c : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : '_';
  }
  return name;
}

std::string render(const LinearProgram& program, const Target& target, std::string_view entry,
                   const RenderOptions& options) {
  check_dtypes(program, target);
  if (target.renderer == "wgsl") return render_wgsl(program, entry);
  return render_c(program, dialect_of(target), entry, options);
}

std::string render(std::span<const LinearProgram> programs, const Target& target,
                   const RenderOptions& options) {
  std::string text;
  for (size_t i = 0; i < programs.size(); ++i)
    text += render(programs[i], target, entry_name(i, programs[i].name), options);
  return text;
}

}  // namespace weft
