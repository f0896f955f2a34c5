#include "weft/base/secrets.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace weft {
namespace {

constexpr std::string_view kHidden = "...";

/// Parts of a name that say so wherever they are: "client_secret", "dbpassword", "apiKey".
constexpr std::string_view kAnywhere[] = {"secret",        "password",   "passwd",
                                          "passphrase",    "credential", "apikey",
                                          "authorization", "accesskey",  "privatekey"};
/// Those that do as whole words: "--hf-token", but not "--max-tokens"; "-k" says nothing.
constexpr std::string_view kWords[] = {"key", "token", "auth", "pwd", "pass", "cookie", "bearer"};

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// In small letters; "apiKey" is two words, "API_KEY" too.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out(1);
  char before = 0;
  for (const char c : name) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    const bool begins = upper && std::islower(static_cast<unsigned char>(before)) != 0;
    if ((!is_letter(c) || begins) && !out.back().empty()) out.emplace_back();
    if (is_letter(c)) out.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    before = c;
  }
  return out;
}

bool says_secret(std::string_view name) {
  std::string joined;
  for (const std::string& word : words_of(name)) {
    if (std::ranges::find(kWords, word) != std::end(kWords)) return true;
    joined += word;
  }
  return std::ranges::any_of(
      kAnywhere, [&](std::string_view part) { return joined.find(part) != std::string::npos; });
}

/// Of "--name", "-name" or "NAME" in front of '='.
bool is_name(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || c == '-' || c == '_'; });
}

void hide_password_of_address(std::string& word) {
  const size_t scheme = word.find("://");
  if (scheme == std::string::npos) return;
  const size_t begin = scheme + 3, end = std::min(word.find_first_of("/?#", begin), word.size());
  const size_t at = word.rfind('@', end);
  if (at == std::string::npos || at < begin) return;
  const size_t colon = word.find(':', begin);
  if (colon < at) word.replace(colon + 1, at - colon - 1, kHidden);
}

void hide_credentials(std::string& word) {
  for (const std::string_view kind : {"Bearer ", "Basic ", "bearer ", "basic "})
    if (const size_t at = word.find(kind); at != std::string::npos)
      word.replace(at + kind.size(), std::string::npos, kHidden);
}

}  // namespace

std::vector<std::string> without_secrets(std::vector<std::string> words) {
  bool is_value = false;  // of the secret option before
  for (std::string& word : words) {
    if (std::exchange(is_value, false) && !word.starts_with("--")) {
      word = kHidden;
      continue;
    }
    hide_password_of_address(word);
    hide_credentials(word);
    const size_t equals = word.find('=');
    const std::string_view name = std::string_view(word).substr(0, equals);
    if (!is_name(name) || !says_secret(name)) continue;
    if (equals != std::string::npos)
      word.replace(equals + 1, std::string::npos, kHidden);
    else
      is_value = word.starts_with('-');
  }
  return words;
}

}  // namespace weft
