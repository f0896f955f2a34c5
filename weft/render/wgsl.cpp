#include "weft/render/wgsl.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/render/scopes.h"
#include "weft/render/wgsl_writer.h"

namespace weft {

namespace {

// Words alone, so that members follow each other without gaps.
std::string arguments(const LinearProgram& program) {
  std::string members = "begin: u32, end: u32, zero: u32";
  for (size_t i = 0; i < program.params.size(); ++i) append_format(members, ", at{}: u32", i);
  for (size_t i = 0; i < program.variables.size(); ++i)
    append_format(members, ", var{}_low: u32, var{}_high: u32", i, i);
  return strformat("struct Args {{ {} }}\n@group(0) @binding(0) var<uniform> args: Args;\n",
                   members);
}

std::string element_type(const ProgramParam& p) {
  if (!is_part_of_word(p.dtype)) return std::string(wgsl_type(p.dtype));
  return p.written ? "atomic<u32>" : "u32";
}

/// What a work item is told, and the lines before the program's own.
std::string entry_head(const LinearProgram& program, std::string_view entry) {
  if (!program.launch.grouped)
    return strformat(
        "@compute @workgroup_size({})\n"
        "fn {}(@builtin(global_invocation_id) id: vec3<u32>) {{\n"
        "  let item = args.begin + id.x;\n"
        "  if (item >= args.end) {{ return; }}\n",
        kWgslGroup, entry);
  const auto& size = program.launch.group;
  return strformat(
      "@compute @workgroup_size({}, {}, {})\n"
      "fn {}(@builtin(workgroup_id) group: vec3<u32>,\n"
      "  @builtin(local_invocation_id) member: vec3<u32>) {{\n",
      size[0], size[1], size[2], entry);
}

}  // namespace

// All params are read_write, because one buffer cannot be both kinds in a dispatch, and slices of
// an arena are one buffer.
std::string render_wgsl(const LinearProgram& program, std::string_view entry) {
  WgslWriter writer(program);
  writer.write();
  const bool shuffles =
      std::ranges::any_of(program.code, [](NodeRef n) { return n->op == Op::Shuffle; });
  std::string text = (shuffles ? "enable subgroups;\n" : "") + arguments(program);
  for (size_t i = 0; i < program.params.size(); ++i)
    if (program.params[i].dtype != DType::Void)
      append_format(text, "@group(0) @binding({}) var<storage, read_write> p{}: array<{}>;\n",
                    i + 1, i, element_type(program.params[i]));
  for (NodeRef n : local_arrays(program))
    append_format(text, "var<workgroup> l{}: array<{}, {}>;\n", n->int_arg(0), wgsl_type(n->dtype),
                  n->src(0)->vmin);
  return text + writer.prelude().text() + entry_head(program, entry) + writer.body() + "}\n";
}

}  // namespace weft
