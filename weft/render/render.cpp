#include "weft/render/render.h"

#include "weft/base/error.h"
#include "weft/render/c.h"

namespace weft {

namespace {

struct Renderer {
  std::string_view name;
  std::string (*render)(const LinearProgram&, const Target&, std::string_view entry,
                        const RenderOptions&);
};

constexpr Renderer kRenderers[] = {
    {"c", render_c},
};

const Renderer& renderer_of(const Target& target) {
  for (const Renderer& r : kRenderers)
    if (r.name == target.renderer) return r;
  internal_error("render", "target {} has no renderer", target.name);
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
  return renderer_of(target).render(program, target, entry, options);
}

std::string render(std::span<const LinearProgram> programs, const Target& target,
                   const RenderOptions& options) {
  std::string text;
  for (size_t i = 0; i < programs.size(); ++i)
    text += render(programs[i], target, entry_name(i, programs[i].name), options);
  return text;
}

}  // namespace weft
