// BodyText: the text of a function's body as writers make it, block by block.
#pragma once

#include <string>
#include <string_view>

#include "weft/base/format.h"

namespace weft {

class BodyText {
 public:
  void statement(std::string_view text) {
    statements_.append(static_cast<size_t>(depth_) * 2, ' ').append(text).append("\n");
  }
  void open(std::string_view header) {
    statement(header.empty() ? "{" : strformat("{} {{", header));
    ++depth_;
  }
  void close() {
    --depth_;
    statement("}");
  }
  /// Of a value that is used outside of the block that computes it.
  void declare(std::string_view text) { append_format(declarations_, "  {}\n", text); }
  /// Declarations, then statements.
  std::string text() const { return declarations_ + statements_; }

 private:
  int depth_ = 1;
  std::string declarations_, statements_;
};

}  // namespace weft
