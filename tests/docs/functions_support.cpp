#include "tests/docs/functions.h"

#include <gtest/gtest.h>

#include <cctype>
#include <sstream>

#include "tests/docs/pages.h"
#include "weft/base/format.h"

namespace weft {

namespace {

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Whether the text declares a function of this name, or an op's row does.
bool declares(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const char after = at + name.size() < text.size() ? text[at + name.size()] : ' ';
    const bool bound = before == '"' && after == '"';  // to Python
    if (bound || (!is_name_char(before) && (after == '(' || (before == ' ' && after == ','))))
      return true;
  }
  return false;
}

std::string rows_of(const FunctionRow& row) {
  std::string out;
  std::istringstream names(row.names);
  const std::string path = row.header ? std::string("weft/tensor/") + row.header : "";
  const std::string text = row.header ? repository_file(path) : "";
  const std::string label = is_of_python(row) ? "Python" : row.header ? row.header : "";
  for (std::string name; names >> name;) {
    const size_t equal = name.find('=', 1);
    const std::string declared = equal == std::string::npos ? name : name.substr(equal + 1);
    if (row.header && !declares(text, declared))
      ADD_FAILURE() << path << " does not declare " << declared;
    const std::string shown = name.substr(0, equal);
    const bool renamed = declared != shown && declared.substr(0, 8) != "operator";
    append_format(out, "| `{}` | {} | {}{} |\n", cell(shown),
                  row.header ? strformat("[{}](../weft/tensor/{})", label, row.header) : "no",
                  renamed ? strformat("`{}`: ", declared) : "", row.note);
  }
  return out;
}

std::string derived_rows() {
  std::string out =
      "\n### Elementwise functions made of others\n\nRows of `weft/tensor/derived.def`; "
      "methods of `Tensor`.\n\n| function | what it is |\n|---|---|\n";
#define WEFT_DERIVED(name, declared, params, doc, ...) \
  append_format(out, "| `{}` | {} |\n", #name, cell(doc));
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
  return out;
}

}  // namespace

std::string function_tables() {
  std::string out =
      "\n# Functions\n\nWhat a program calls, made of those ops: methods of `Tensor` and, where "
      "another "
      "header is named, functions that\n`weft/weft.h` does not include. Checked against the "
      "headers.\n";
  for (const FunctionFamily& family : kFunctionFamilies) {
    append_format(out, "\n### {}\n\n| function | where | |\n|---|---|---|\n", family.title);
    for (const FunctionRow& row : family.rows) out += rows_of(row);
  }
  return out + derived_rows();
}

}  // namespace weft
