// What a command line must not give away: keys, tokens and passwords among its words.
#pragma once

#include <string>
#include <vector>

namespace weft {

/// The words with "..." in the place of secrets: values of options whose names say that they are
/// ("--api-key K", "--api-key=K", "-token K", "OPENAI_API_KEY=K"), passwords in addresses
/// ("https://me:PASSWORD@host"), what follows "Bearer " and "Basic ".
std::vector<std::string> without_secrets(std::vector<std::string> words);

}  // namespace weft
