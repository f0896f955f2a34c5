// The functions that a WGSL text needs, collected as they are first used.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace weft {

class WgslPrelude {
 public:
  /// `text` with the functions that it names as @name declared.
  std::string expand(std::string_view text);
  const std::string& text() const { return text_; }

 private:
  std::set<std::string_view> known_;
  std::string text_;
};

}  // namespace weft
