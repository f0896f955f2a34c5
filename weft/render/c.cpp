#include "weft/render/c.h"

#include "weft/base/format.h"
#include "weft/render/c_writer.h"

namespace weft {

namespace {

// device/kernel_abi.h, in C.
constexpr std::string_view kAbi =
    "#ifndef WEFT_KERNEL_ARGS\n"
    "#define WEFT_KERNEL_ARGS\n"
    "struct KernelArgs {\n"
    "  unsigned version, worker;\n"
    "  void *const *buffers;\n"
    "  const long long *vars;\n"
    "  void *scratch;\n"
    "  unsigned *status;\n"
    "};\n"
    "#endif\n";

std::string parameter_list(const LinearProgram& program, CPrelude& prelude, bool distinct) {
  std::string list;
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ProgramParam& p = program.params[i];
    // A slot the kernel does not use has no dtype.
    const std::string type = p.dtype == DType::Void ? "void" : prelude.type(c_storage(p.dtype, 1));
    append_format(list, "{}{}*{} p{}, ", p.written ? "" : "const ", type,
                  distinct ? " restrict" : "", i);
  }
  return list + "const long long* vars, unsigned begin, unsigned end";
}

std::string argument_list(const LinearProgram& program) {
  std::string list;
  for (size_t i = 0; i < program.params.size(); ++i) append_format(list, "args->buffers[{}], ", i);
  return list + "args->vars, begin, end";
}

}  // namespace

// The work is done by an inner function because compilers believe `restrict` of parameters only.
std::string render_c(const LinearProgram& program, const Target&, std::string_view entry,
                     const RenderOptions& options) {
  CWriter writer(program);
  writer.write();
  const std::string parameters = parameter_list(program, writer.prelude(), options.distinct_params);
  std::string text = writer.prelude().text();
  text += kAbi;
  append_format(text, "static void {}_body({}) {{\n{}}}\n", entry, parameters, writer.body());
  append_format(text, "void {}(const struct KernelArgs* args, unsigned begin, unsigned end) {{\n",
                entry);
  append_format(text, "  {}_body({});\n}}\n", entry, argument_list(program));
  return text;
}

}  // namespace weft
