#include "weft/render/render.h"

#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/graph/print.h"
#include "weft/render/c.h"
#include "weft/render/ptx.h"
#include "weft/render/wgsl.h"

namespace weft {

namespace {

const CDialect& dialect_of(const Target& target) {
  if (const CDialect* dialect = find_dialect(target.renderer)) return *dialect;
  internal_error("render", "target {} has no renderer", target.name);
}

/// Said here, before a compiler says it in its own way.
void check_dtypes(RenderState& s) {
  for (NodeRef n : s.program.code) {
    if (n->dtype == DType::Void || is_index(n->dtype) || (s.target.dtypes & dtype_bit(n->dtype)))
      continue;
    fail("dtype",
         "kernel {} computes with {}, which the machine of target {} does not have; cast to "
         "another dtype, or compute it on another device",
         s.program.name, name(n->dtype), s.target.name);
  }
}

void write(RenderState& s) {
  if (s.target.renderer == "wgsl") {
    s.written = render_wgsl(s.program, s.entry);
  } else if (s.target.renderer == "ptx") {
    s.written = render_ptx(s.program, s.entry, s.options);
  } else {
    s.written = render_c(s.program, dialect_of(s.target), s.entry, s.options);
  }
}

const char* nothing_called_so(const RenderState& s) {
  return s.written.find(s.entry) == std::string::npos ? "no function of the entry's name" : nullptr;
}

constexpr Pass<RenderState> kPasses[] = {
    {"render.check_dtypes", "the target's language has every dtype", check_dtypes},
    {"render.write", "text for a compiler: the function and all that it needs", write,
     nothing_called_so},
};

}  // namespace

PassView RenderState::view() const {
  return {static_cast<int64_t>(program.code.size()), hash_text(text())};
}

std::string RenderState::text() const { return written.empty() ? print_program(program) : written; }

StateParts RenderState::parts() const {
  return written.empty() ? StateParts::of(program) : StateParts::text(written);
}

std::span<const Pass<RenderState>> render_passes() { return kPasses; }

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
  RenderState state{program, target, entry, options};
  run_passes(render_passes(), state);
  return std::move(state.written);
}

std::string render(std::span<const LinearProgram> programs, const Target& target,
                   const RenderOptions& options) {
  std::string text;
  for (size_t i = 0; i < programs.size(); ++i)
    text += render(programs[i], target, entry_name(i, programs[i].name), options);
  return text;
}

}  // namespace weft
