// What is proved of each rule: tests/rules/proofs.lock, as this program was built with it.
#pragma once

#include <string>
#include <string_view>

namespace weft::viz {

/// "bits:bv8", "code" (right side in C++: tested only), ...; empty where nothing is known of a rule
/// of this text.
std::string proof_of(std::string_view rule, std::string_view text);

}  // namespace weft::viz
