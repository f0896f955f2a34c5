// docs/onnx.md is the table of ONNX operators, printed.
#include <gtest/gtest.h>

#include <map>

#include "tests/docs/pages.h"
#include "weft/base/format.h"
#include "weft/onnx/fold.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {
namespace {

using Rows = std::map<std::string_view, std::string>;  // since which opsets, by name

bool folds(std::string_view name) {
  for (const auto rows : {arithmetic_folds(), movement_folds()})
    for (const FoldRow& row : rows)
      if (row.name == name) return true;
  return name == "Shape" || name == "Size" || name == "Constant";
}

std::string table(std::string_view domain, const Rows& rows) {
  std::string text = strformat("\n## {}\n\n{} operators.\n\n| operator | since opset | of known sizes |\n|---|---|---|\n",
                               domain.empty() ? "ai.onnx" : domain, rows.size());
  for (const auto& [name, since] : rows)
    append_format(text, "| {} | {} | {} |\n", name, since,
                  domain.empty() && folds(name) ? "known" : "");
  return text;
}

TEST(Pages, Onnx) {
  std::map<std::string_view, Rows> domains;
  for (const auto family : operator_families())
    for (const Operator& o : family) {
      std::string& since = domains[o.domain][o.name];
      since += (since.empty() ? "" : ", ") + std::to_string(o.since);
    }
  std::string page =
      "# ONNX operators\n\nMade from the tables of `weft/onnx/*_operators.cpp`. An operator runs in "
      "every opset of its domain from the one\nlisted on; where its meaning changed, it has several "
      "rows, and smaller changes are looked up in the node's opset.\n`known`: of sizes that are "
      "known, or symbolic, it computes sizes, and compiles no kernel.\n\n`weft onnx inspect MODEL` "
      "lists what a model needs, and what of it is missing. `tools/onnx_cases DIR` writes the "
      "backend\ntests of the PyPI package onnx, and `weft onnx check DIR` runs them.\n\nTypes: all "
      "of ONNX but complex numbers. float8 is stored as such; int4, int2 lie in i8, uint4, uint2 in "
      "u8, float4, float6\nand float8e8m0 in f32, one element after the other. Strings live on the "
      "host.\n";
  for (const auto& [domain, rows] : domains) page += table(domain, rows);
  expect_page("onnx.md", page);
}

}  // namespace
}  // namespace weft::onnx
