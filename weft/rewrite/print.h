// Rules and patterns as text.
#pragma once
#include <string>

#include "weft/rewrite/rule_set.h"

namespace weft {

std::string to_text(const Pat& p, bool condition = false);  ///< "x * c0 / c1"
std::string domain_text(Domain d);                          ///< "index|bits"
std::string to_text(const Rule& r);    ///< "div.of_mul: (x * c0) / c1 -> x * (c0 / c1) if ..."
std::string source_of(const Rule& r);  ///< "weft/simplify/index_rules.cpp:12"

}  // namespace weft
