#include "weft/render/c.h"

#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/render/c_writer.h"
#include "weft/render/scopes.h"
#include "weft/target/kernel_abi.h"

namespace weft {

namespace {

// A slot the kernel does not use has no dtype.
std::string param_type(const ProgramParam& p, CPrelude& prelude) {
  const std::string type = p.dtype == DType::Void ? "void" : prelude.type(c_storage(p.dtype, 1));
  return (p.written ? "" : "const ") + type;
}

std::string body_params(const LinearProgram& program, CPrelude& prelude, bool distinct) {
  const CDialect& d = prelude.dialect();
  std::string list;
  for (size_t i = 0; i < program.params.size(); ++i) {
    append_format(list, "{}{}*{} p{}, ", d.memory, param_type(program.params[i], prelude),
                  distinct ? d.restrict_word : "", i);
  }
  if (d.has_work_items()) {
    for (size_t i = 0; i < program.variables.size(); ++i)
      append_format(list, "const {} var{}, ", d.long_word, i);
  } else {
    append_format(list, "const {}* vars, ", d.long_word);
  }
  return list;
}

/// What a program of groups is given beside buffers and variables.
struct GroupNodes {
  std::vector<NodeRef> ids;  // WorkIds
  std::vector<NodeRef> memory;

  explicit GroupNodes(const LinearProgram& program) : memory(local_arrays(program)) {
    for (NodeRef n : program.code)
      if (n->op == Op::WorkId) ids.push_back(n);
  }
};

std::string group_params(const GroupNodes& nodes, CPrelude& prelude) {
  std::string list;
  for (NodeRef n : nodes.memory)
    append_format(list, "{}{}* l{}, ", prelude.dialect().local_pointer,
                  prelude.type(c_storage(n->dtype, 1)), n->int_arg(0));
  for (NodeRef n : nodes.ids) append_format(list, "const unsigned {}, ", work_id_name(n));
  if (!list.empty()) list.resize(list.size() - 2);
  return list;
}

// The C entry takes one struct, whatever the kernel.
std::string host_entry(const LinearProgram& program, std::string_view entry) {
  std::string list;
  for (size_t i = 0; i < program.params.size(); ++i) append_format(list, "args->buffers[{}], ", i);
  return strformat(
      "void {}(const struct KernelArgs* args, unsigned begin, unsigned end) {{\n"
      "  {}_body({}args->vars, begin, end);\n}}\n",
      entry, entry, list);
}

/// What stands for a letter after a $.
struct Word {
  char letter;
  std::string text;
};

std::string filled(std::string_view text, std::initializer_list<Word> words) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    ++i;
    for (const Word& w : words)
      if (w.letter == text[i]) out += w.text;
  }
  return out;
}

/// The arguments of every work item's program: as the entry takes them, and as it gives them to
/// the body.
struct Arguments {
  std::string params, given;
  size_t place = 0;
};

Arguments common_arguments(const LinearProgram& program, CPrelude& prelude) {
  const CDialect& d = prelude.dialect();
  Arguments a;
  for (const ProgramParam& p : program.params) {
    const std::string type = param_type(p, prelude), number = strformat("{}", a.place);
    a.params += filled(d.param, {{'T', type}, {'N', number}, {'B', number}}) + ", ";
    a.given += filled(d.argument, {{'T', type}, {'N', number}}) + ", ";
    ++a.place;
  }
  for (size_t i = 0; i < program.variables.size(); ++i) {
    a.params += filled(d.variable, {{'N', strformat("{}", i)}, {'B', strformat("{}", a.place++)}});
    a.params += ", ";
    append_format(a.given, "var{}, ", i);
  }
  return a;
}

std::string without_comma(std::string list) {
  if (list.ends_with(", ")) list.resize(list.size() - 2);
  return list;
}

// Buffers, variables, begin, end: one argument after the other. A work item runs one item.
std::string work_item_entry(const LinearProgram& program, std::string_view entry,
                            CPrelude& prelude) {
  const CDialect& d = prelude.dialect();
  Arguments a = common_arguments(program, prelude);
  a.params += filled(d.count, {{'N', "begin"}, {'B', strformat("{}", a.place)}}) + ", ";
  a.params += filled(d.count, {{'N', "end"}, {'B', strformat("{}", a.place + 1)}});
  return strformat(
      "{}{}({}{}) {{\n  const unsigned at = begin + {};\n"
      "  if (at < end) {}_body({}at, at + 1);\n}}\n",
      d.entry_prefix, entry, a.params, d.item_param, d.item, entry, a.given);
}

// Buffers and variables. A work item is told which one it is and where its group's memory lies,
// which has to be declared here.
std::string group_entry(const LinearProgram& program, std::string_view entry,
                        const GroupNodes& nodes, CPrelude& prelude) {
  const CDialect& d = prelude.dialect();
  Arguments a = common_arguments(program, prelude);
  std::string declarations;
  for (NodeRef n : nodes.memory) {
    append_format(declarations, "  {}{} l{}[{}];\n", d.local_memory,
                  prelude.type(c_storage(n->dtype, 1)), n->int_arg(0), n->src(0)->vmin);
    append_format(a.given, "l{}, ", n->int_arg(0));
  }
  for (NodeRef n : nodes.ids) {
    const bool grid = static_cast<Binding>(n->int_arg(0)) == Binding::Grid;
    const int64_t axis = n->int_arg(1);
    a.given += filled(grid ? d.group_id : d.item_id,
                      {{'A', strformat("{}", axis)}, {'X', std::string(1, "xyz"[axis])}});
    a.given += ", ";
  }
  const auto& group = program.launch.group;
  const std::string size = filled(d.group_size, {{'X', strformat("{}", group[0])},
                                                 {'Y', strformat("{}", group[1])},
                                                 {'Z', strformat("{}", group[2])},
                                                 {'N', strformat("{}", program.launch.items())}});
  return strformat("{}{}{}({}{}) {{\n{}  {}_body({});\n}}\n", d.entry_prefix, size, entry,
                   without_comma(std::move(a.params)), d.group_param, declarations, entry,
                   without_comma(std::move(a.given)));
}

}  // namespace

// The work is done by an inner function because compilers believe `restrict` of parameters only.
std::string render_c(const LinearProgram& program, const CDialect& dialect, std::string_view entry,
                     const RenderOptions& options) {
  CWriter writer(program, dialect);
  writer.write();
  CPrelude& prelude = writer.prelude();
  const std::string params = body_params(program, prelude, options.distinct_params);
  const bool host = !dialect.has_work_items(), grouped = program.launch.grouped;
  WEFT_CHECK(!grouped || dialect.has_groups(), "{}: {} has no work groups", program.name,
             dialect.name);
  const GroupNodes nodes(program);
  const std::string of_item =
      grouped ? group_params(nodes, prelude) : "unsigned begin, unsigned end";
  std::string text = std::string(dialect.header) + prelude.text();
  if (host) {
    append_format(text, "#ifndef WEFT_KERNEL_ARGS\n#define WEFT_KERNEL_ARGS\n{}#endif\n",
                  kKernelArgsInC);
  }
  append_format(text, "{}void {}_body({}) {{\n{}}}\n", dialect.body_prefix, entry,
                without_comma(params + of_item), writer.body());
  if (grouped) return text + group_entry(program, entry, nodes, prelude);
  return text + (host ? host_entry(program, entry) : work_item_entry(program, entry, prelude));
}

}  // namespace weft
