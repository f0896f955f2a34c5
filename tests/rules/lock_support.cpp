#include <sstream>

#include "tests/rules/proof_support.h"
#include "weft/base/format.h"
#include "weft/base/hash.h"
#include "weft/rewrite/print.h"

namespace weft {

std::map<std::string, LockRow> read_lock(const std::string& text) {
  std::map<std::string, LockRow> rows;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    LockRow row;
    if (line.empty() || line[0] == '#' || !(words >> name >> row.hash)) continue;
    std::getline(words >> std::ws, row.verdict);
    rows[name] = row;
  }
  return rows;
}

std::string lock_text(const std::map<std::string, LockRow>& rows) {
  std::string out =
      "# What is known of every rule: name, hash of its text, verdict "
      "(tests/rules/proof_support.h).\n"
      "# The test EveryProof.IsCurrent writes this file anew where a rule changed.\n";
  for (const auto& [name, row] : rows)
    append_format(out, "{} {} {}\n", name, row.hash, row.verdict);
  return out;
}

std::string hash_of(const Rule& rule) { return strformat("{:016x}", hash_text(to_text(rule))); }

}  // namespace weft
