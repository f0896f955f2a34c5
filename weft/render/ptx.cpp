#include "weft/render/ptx.h"

#include "weft/base/format.h"
#include "weft/render/ptx_writer.h"
#include "weft/render/scopes.h"

namespace weft {

namespace {

std::string entry_head(const LinearProgram& program, std::string_view entry) {
  std::string list;
  for (size_t i = 0; i < program.params.size(); ++i) append_format(list, ",\n  .param .u64 p{}", i);
  for (size_t i = 0; i < program.variables.size(); ++i)
    append_format(list, ",\n  .param .s64 var{}", i);
  if (!program.launch.grouped) list += ",\n  .param .u32 begin,\n  .param .u32 end";
  std::string text =
      strformat(".visible .entry {}({})\n", entry, list.empty() ? "" : list.substr(1));
  const auto& size = program.launch.group;
  if (program.launch.grouped)
    append_format(text, ".reqntid {}, {}, {}\n", size[0], size[1], size[2]);
  return text;
}

// Aligned for an element of any dtype.
std::string shared_memory(const LinearProgram& program) {
  std::string text;
  for (NodeRef n : local_arrays(program))
    append_format(text, "  .shared .align 8 .b8 l{}[{}];\n", n->int_arg(0),
                  bytes_for(n->dtype, n->src(0)->vmin));
  return text;
}

}  // namespace

std::string render_ptx(const LinearProgram& program, std::string_view entry,
                       const RenderOptions& options) {
  PtxWriter writer(program, options);
  writer.write();
  return strformat("{}\n{}{{\n{}{}{}}}\n", kPtxHeader, entry_head(program, entry),
                   writer.declarations(), shared_memory(program), writer.body());
}

}  // namespace weft
