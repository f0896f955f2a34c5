#include "weft/viz/proofs.h"

#include "weft/base/format.h"
#include "weft/base/hash.h"

namespace weft::viz {
namespace {

constexpr std::string_view kProofs =
#include "weft/viz/proofs.def"
    ;

/// The part of `line` up to a space, which goes.
std::string_view word_of(std::string_view& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(std::min(line.size(), space + 1));
  return word;
}

}  // namespace

std::string proof_of(std::string_view rule, std::string_view text) {
  std::string_view rest = kProofs;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    if (word_of(line) != rule) continue;
    return word_of(line) == strformat("{:016x}", hash_text(text)) ? std::string(line) : "";
  }
  return "";
}

}  // namespace weft::viz
