#include "weft/app/line_buffer.h"

#include <algorithm>

#include "weft/base/utf8.h"
#include "weft/text/unicode.h"

namespace weft {

namespace {
constexpr size_t kMostLines = 1000;

size_t cluster_width(std::string_view cluster) {
  size_t width = 0;
  for (size_t at = 0; at < cluster.size();)
    width = std::max(width, static_cast<size_t>(text::column_width(next_code_point(cluster, at))));
  return width;
}

bool is_blank(std::string_view text, size_t at) {
  size_t next = at;
  return text::is_space(next_code_point(text, next));
}
}  // namespace

void LineBuffer::set(std::string_view text) {
  text_.clear();
  cursor_ = 0;
  insert(text);
}

void LineBuffer::insert(std::string_view text) {
  std::string kept;
  const std::string valid = valid_utf8(text);
  for (size_t at = 0; at < valid.size();) {
    const char32_t c = next_code_point(valid, at);
    if (c == '\t') kept += ' ';
    if (c == '\n' || (c >= 0x20 && c != 0x7f && !(c >= 0x80 && c < 0xa0))) append_utf8(kept, c);
  }
  text_.insert(cursor_, kept);
  cursor_ += kept.size();
}

/// Where the cluster before `at` begins.
size_t LineBuffer::before(size_t at) const {
  size_t last = 0, here = 0;
  text::for_each_grapheme(std::string_view(text_).substr(0, at), [&](std::string_view cluster) {
    last = here;
    here += cluster.size();
  });
  return last;
}

size_t LineBuffer::behind(size_t at) const {
  size_t end = text_.size(), here = 0;
  bool found = false;
  text::for_each_grapheme(text_, [&](std::string_view cluster) {
    here += cluster.size();
    if (!found && here > at) {
      end = here;
      found = true;
    }
  });
  return end;
}

size_t LineBuffer::line_begin(size_t at) const {
  return at == 0 ? 0 : text_.rfind('\n', at - 1) + 1;
}
size_t LineBuffer::line_end(size_t at) const {
  return std::min(text_.find('\n', at), text_.size());
}

void LineBuffer::backspace() {
  const size_t from = before(cursor_);
  text_.erase(from, cursor_ - from);
  cursor_ = from;
}

void LineBuffer::erase() { text_.erase(cursor_, behind(cursor_) - cursor_); }
void LineBuffer::left() { cursor_ = before(cursor_); }
void LineBuffer::right() { cursor_ = behind(cursor_); }
void LineBuffer::home() { cursor_ = line_begin(cursor_); }
void LineBuffer::end() { cursor_ = line_end(cursor_); }
void LineBuffer::erase_to_end() { text_.erase(cursor_, line_end(cursor_) - cursor_); }

void LineBuffer::erase_to_home() {
  const size_t from = line_begin(cursor_);
  text_.erase(from, cursor_ - from);
  cursor_ = from;
}

void LineBuffer::word_left() {
  while (cursor_ > 0 && is_blank(text_, code_point_before(text_, cursor_))) left();
  while (cursor_ > 0 && !is_blank(text_, code_point_before(text_, cursor_))) left();
}

void LineBuffer::word_right() {
  while (cursor_ < text_.size() && is_blank(text_, cursor_)) right();
  while (cursor_ < text_.size() && !is_blank(text_, cursor_)) right();
}

void LineBuffer::erase_word() {
  const size_t end = cursor_;
  word_left();
  text_.erase(cursor_, end - cursor_);
}

void LineBuffer::go_to(size_t line, size_t clusters) {
  cursor_ = line;
  for (const size_t end = line_end(line); clusters > 0 && cursor_ < end; --clusters) right();
}

bool LineBuffer::up() {
  const size_t line = line_begin(cursor_);
  if (line == 0) return false;
  size_t clusters = 0;
  text::for_each_grapheme(std::string_view(text_).substr(line, cursor_ - line),
                          [&](std::string_view) { ++clusters; });
  go_to(line_begin(line - 1), clusters);
  return true;
}

bool LineBuffer::down() {
  const size_t line = line_begin(cursor_), end = line_end(cursor_);
  if (end == text_.size()) return false;
  size_t clusters = 0;
  text::for_each_grapheme(std::string_view(text_).substr(line, cursor_ - line),
                          [&](std::string_view) { ++clusters; });
  go_to(end + 1, clusters);
  return true;
}

TextPlace place_after(std::string_view text, TextPlace from, size_t columns, size_t indent) {
  TextPlace at = from;
  text::for_each_grapheme(text, [&](std::string_view cluster) {
    if (cluster == "\n") {
      at = {at.row + 1, indent};
      return;
    }
    const size_t width = cluster_width(cluster);
    if (at.column + width > columns) at = {at.row + 1, 0};
    at.column += width;
  });
  // A cursor cannot stand behind the last column.
  return at.column >= columns ? TextPlace{at.row + 1, 0} : at;
}

size_t text_width(std::string_view text) {
  size_t width = 0;
  text::for_each_grapheme(text, [&](std::string_view cluster) { width += cluster_width(cluster); });
  return width;
}

void LineHistory::add(std::string_view line) {
  if (line.empty() || (!lines_.empty() && lines_.back() == line)) return;
  lines_.emplace_back(line);
  if (lines_.size() > kMostLines) lines_.erase(lines_.begin());
}

std::string LineHistory::saved() const {
  std::string all;
  for (const std::string& line : lines_) {
    for (const char c : line) {
      if (c == '\n' || c == '\\') all += '\\';
      all += c == '\n' ? 'n' : c;
    }
    all += '\n';
  }
  return all;
}

void LineHistory::load(std::string_view saved) {
  std::string line;
  for (size_t at = 0; at < saved.size(); ++at) {
    if (saved[at] == '\n') {
      if (is_utf8(line)) add(line);
      line.clear();
    } else if (saved[at] == '\\' && at + 1 < saved.size()) {
      ++at;
      line += saved[at] == 'n' ? '\n' : saved[at];
    } else {
      line += saved[at];
    }
  }
}

}  // namespace weft
