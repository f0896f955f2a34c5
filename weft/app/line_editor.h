// LineEditor: reads what somebody types on a terminal, several lines if they like.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weft/app/line_buffer.h"

namespace weft {

/// Keys: arrows, Home, End, Ctrl-A E B F, Alt-B F, Backspace, Delete, Ctrl-K U W, Ctrl-L, up and
/// down for lines and history, Alt-Enter or a backslash at the end for another line. Pasted text
/// stays as it is.
class LineEditor {
 public:
  enum class Result : uint8_t { Line, Interrupted, End };

  /// Both are of one terminal.
  LineEditor(int in, int out) : in_(in), out_(out) {}

  /// Ctrl-C: Interrupted, and what was typed is gone. Ctrl-D on nothing: End.
  Result read(std::string_view prompt, std::string_view styled_prompt, std::string& line);
  LineHistory& history() { return history_; }

 private:
  enum class Step : uint8_t { More, Done, Interrupted, End };
  std::optional<unsigned char> byte(bool wait);
  bool more_waits() const;
  Step key(unsigned char c);
  void escape();
  void csi();
  void paste();
  void move_in_history(bool older);
  void character(unsigned char first);
  bool enter();
  void paint(bool last);
  void write(std::string_view text) const;
  size_t columns() const;

  int in_, out_;
  LineBuffer buffer_;
  LineHistory history_;
  size_t at_in_history_ = 0;
  std::string draft_;  // what was typed before going up in the history
  std::string_view prompt_, styled_prompt_;
  size_t painted_row_ = 0;  // where the cursor is, below the prompt's
};

}  // namespace weft
