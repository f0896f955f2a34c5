// docs/ops.md, docs/options.md and docs/dtypes.md are the tables of the source, printed.
#include <gtest/gtest.h>

#include "tests/docs/functions.h"
#include "tests/docs/pages.h"
#include "weft/base/format.h"
#include "weft/base/options.h"
#include "weft/dtype/dtype.h"
#include "weft/graph/op.h"
#include "weft/graph/schema.h"

namespace weft {
namespace {

// ---- ops

struct GroupText {
  OpGroup group;
  const char* title;
};
constexpr GroupText kGroups[] = {
    {OpGroup::Leaf, "Leaves"},
    {OpGroup::Movement, "Movement: pure index maps"},
    {OpGroup::Unary, "Elementwise, one operand"},
    {OpGroup::Binary, "Elementwise, two operands"},
    {OpGroup::Ternary, "Elementwise, three operands and more"},
    {OpGroup::Loop, "Loops with state"},
    {OpGroup::Storage, "Storage"},
    {OpGroup::Memory, "Kernels"},
    {OpGroup::Linear, "Linear programs only"},
};

struct TraitText {
  OpTrait trait;
  const char* word;
};
constexpr TraitText kTraits[] = {
    {kCommutative, "commutative"}, {kAssociative, "associative"},
    {kIdempotent, "idempotent"},   {kBoolResult, "gives bool"},
    {kFloatOnly, "floats only"},   {kIntOnly, "integers and bool only"},
    {kApproximate, "approximate"},
};

std::string traits_text(uint16_t traits) {
  std::string out;
  for (const TraitText& t : kTraits)
    if (traits & t.trait) out += (out.empty() ? "" : ", ") + std::string(t.word);
  return out;
}

std::string integers_text(Op op) {
  std::string out = schema(op).text ? "text" : "";
  for (const Field& f : schema(op).list()) {
    if (!out.empty()) out += ' ';
    out += f.name;
    if (f.kind == FieldKind::List) out += "...";
  }
  return out;
}

TEST(Pages, Ops) {
  std::string page =
      "# Ops\n\nMade from `weft/graph/ops.def`, the one list of them. `sources`: how many, `*` any "
      "number. `integers`: what a\nnode holds besides its sources, by name. "
      "[The IR](design/ir.md) says which ops may stand where;\n"
      "[how to add one](how_to_add/op.md). [Functions](#functions) made of them are listed at the "
      "end.\n";
  for (const GroupText& g : kGroups) {
    append_format(page, "\n## {}\n\n| op | id | sources | integers | meaning | traits |\n",
                  g.title);
    page += "|---|---|---|---|---|---|\n";
    for (const OpInfo& row : kOps) {
      if (row.group != g.group) continue;
      append_format(page, "| `{}` | {} | {} | {} | {} | {} |\n", row.mnemonic,
                    static_cast<int>(row.op), row.arity < 0 ? "*" : std::to_string(row.arity),
                    integers_text(row.op), cell(row.doc), traits_text(row.traits));
    }
  }
  expect_page("ops.md", page + function_tables());
}

// ---- options

TEST(Pages, Options) {
  std::string page =
      "# Options\n\nMade from `weft/base/options.def`, the one list of the environment variables "
      "weft reads. Each is read once,\nwhen a `Context` is made; in a program they are the fields "
      "of `weft::Options`. An unknown `WEFT_` name or a\nbad value is an error that says so. "
      "[How to add one](how_to_add/option.md).\n\n| variable | type | default | meaning |\n"
      "|---|---|---|---|\n";
  size_t count = 0;
  const OptionRow* rows = option_rows(count);
  for (size_t i = 0; i < count; ++i)
    append_format(page, "| `{}` | {} | {} | {} |\n", rows[i].name, rows[i].type,
                  rows[i].initial[0] ? "`" + std::string(rows[i].initial) + "`" : "",
                  cell(rows[i].doc));
  page +=
      "\nTypes: INT a whole number, BOOL 0 or 1, BYTES a count with an optional K, M or G, TEXT "
      "any text,\nSYSTEM a variable that is not ours and is never rejected.\n";
  expect_page("options.md", page);
}

// ---- dtypes

std::string rows_of_dtypes() {
  std::string out = "| dtype | id | bits | NumPy | safetensors | least | greatest | digits |\n";
  out += "|---|---|---|---|---|---|---|---|\n";
  for (const DTypeRow& row : kDTypes) {
    const DType d = row.dtype;
    if (d == DType::Void) continue;
    std::string least, most, digits;
    if (is_float(d)) {
      least = strformat("{}", -float_max(d));
      most = strformat("{}", float_max(d));
      digits = strformat("{} bits", float_digits(d));
    } else {
      least = strformat("{}", int_min(d));
      most = strformat("{}", int_max(d));
    }
    append_format(out, "| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", row.name,
                  static_cast<int>(d), row.bits, row.numpy_name, row.safetensors_name, least, most,
                  digits);
  }
  return out;
}

std::string promotion_table() {
  std::string head = "| |", line = "|---|", body;
  for (const DTypeRow& column : kDTypes) {
    if (!is_data(column.dtype)) continue;
    append_format(head, " {} |", column.name);
    line += "---|";
    append_format(body, "| **{}** |", column.name);
    for (const DTypeRow& other : kDTypes)
      if (is_data(other.dtype))
        append_format(body, " {} |", name(promote(column.dtype, other.dtype)));
    body += '\n';
  }
  return head + "\n" + line + "\n" + body;
}

TEST(Pages, DTypes) {
  std::string page =
      "# Dtypes\n\nMade from `weft/dtype/dtypes.def`. [How to add one](how_to_add/dtype.md).\n\n" +
      rows_of_dtypes() +
      "\n`index` is the mathematical integer of shapes and loops: no tensor holds it. 8-bit and "
      "16-bit floats\nare stored; arithmetic on them is done in f32 and rounded after every "
      "op.\n\n## Two "
      "operands meet in\n\n" +
      promotion_table() +
      "\nA C++ number is weak: it takes the tensor's dtype where its kind allows (`i8 + 1` is i8, "
      "`i8 + 0.5` is f32).\n\n";
  // What follows is written by hand.
  const std::string now = repository_file("docs/dtypes.md");
  const size_t rest = now.find("## NaN");
  expect_page("dtypes.md", page + (rest == std::string::npos ? "" : now.substr(rest)));
}

}  // namespace
}  // namespace weft
