// LineBuffer: a text being edited on a terminal, cluster by cluster; and where it stands there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The cursor is between grapheme clusters: a letter with its accents, an emoji with its parts.
class LineBuffer {
 public:
  const std::string& text() const { return text_; }
  size_t cursor() const { return cursor_; }
  void set(std::string_view text);  // the cursor is at its end

  void insert(std::string_view text);  // control characters but \n are left out
  void backspace();
  void erase();  // what the cursor is on
  void left();
  void right();
  void word_left();
  void word_right();
  void home();  // of the line
  void end();
  void erase_to_end();
  void erase_to_home();
  void erase_word();
  bool up();  // to the line above; false: there is none
  bool down();

 private:
  size_t before(size_t at) const;
  size_t behind(size_t at) const;
  size_t line_begin(size_t at) const;
  size_t line_end(size_t at) const;
  void go_to(size_t line, size_t clusters);

  std::string text_;
  size_t cursor_ = 0;
};

struct TextPlace {
  size_t row = 0, column = 0;
};

/// Where the end of `text` is on a terminal of so many columns if it begins at `from`; lines after
/// the first begin at `indent`.
TextPlace place_after(std::string_view text, TextPlace from, size_t columns, size_t indent);
/// Columns that a text takes.
size_t text_width(std::string_view text);

/// What was typed before: newest last, no line twice in a row, at most 1000.
class LineHistory {
 public:
  void add(std::string_view line);
  const std::vector<std::string>& lines() const { return lines_; }
  /// One entry a line; \n and \\ stand for what they do. What is no UTF-8 is left out.
  std::string saved() const;
  void load(std::string_view saved);

 private:
  std::vector<std::string> lines_;
};

}  // namespace weft
