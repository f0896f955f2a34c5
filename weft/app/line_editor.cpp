#include "weft/app/line_editor.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iterator>

#include "weft/base/format.h"
#include "weft/base/utf8.h"

namespace weft {

namespace {

constexpr unsigned char control(char letter) { return static_cast<unsigned char>(letter & 0x1f); }
constexpr int kEscapeMilliseconds = 50;  // between the bytes of one key

constexpr char kPasteMarks[] = "\033[?2004h", kNoPasteMarks[] = "\033[?2004l\r\n";

constexpr int kEnding[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

// A signal handler can reach nothing but globals.
volatile std::sig_atomic_t raw_fd = -1;
termios before_raw{};
struct sigaction before_ending[std::size(kEnding)];

/// Goes on as if nobody had asked for the signal, on a terminal that others can use.
void restore_and_end(int signal) {
  ::tcsetattr(raw_fd, TCSANOW, &before_raw);
  [[maybe_unused]] const ssize_t size = ::write(raw_fd, kNoPasteMarks, sizeof(kNoPasteMarks) - 1);
  for (size_t i = 0; i < std::size(kEnding); ++i)
    if (kEnding[i] == signal) ::sigaction(signal, &before_ending[i], nullptr);
  ::raise(signal);
}

/// While it lives, what ends the process restores the terminal first.
class EndingSignals {
 public:
  EndingSignals() {
    struct sigaction action = {};
    action.sa_handler = restore_and_end;
    action.sa_flags = SA_NODEFER;
    for (size_t i = 0; i < std::size(kEnding); ++i) {
      ::sigaction(kEnding[i], nullptr, &before_ending[i]);
      if (before_ending[i].sa_handler != SIG_IGN) ::sigaction(kEnding[i], &action, nullptr);
    }
  }
  ~EndingSignals() {
    for (size_t i = 0; i < std::size(kEnding); ++i)
      ::sigaction(kEnding[i], &before_ending[i], nullptr);
  }
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;
};

/// Keys come one by one, unseen, and Ctrl-C as a byte.
class RawMode {
 public:
  explicit RawMode(int fd) : fd_(fd), is_terminal_(::tcgetattr(fd, &before_) == 0) {
    if (!is_terminal_) return;
    before_raw = before_;
    raw_fd = fd;
    signals_.emplace();
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | IXON | INLCR | IGNCR);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(fd, TCSADRAIN, &raw);
  }
  ~RawMode() {
    if (is_terminal_) ::tcsetattr(fd_, TCSADRAIN, &before_);
    signals_.reset();
  }
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;

 private:
  int fd_;
  termios before_{};
  bool is_terminal_;
  std::optional<EndingSignals> signals_;
};

}  // namespace

void LineEditor::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t size = ::write(out_, text.data(), text.size());
    if (size < 0 && errno != EINTR) return;
    if (size > 0) text.remove_prefix(static_cast<size_t>(size));
  }
}

size_t LineEditor::columns() const {
  winsize size{};
  return ::ioctl(out_, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

/// Nothing: the input has ended, or no byte came in time.
std::optional<unsigned char> LineEditor::byte(bool wait) {
  pollfd ready{in_, POLLIN, 0};
  while (true) {
    const int count = ::poll(&ready, 1, wait ? -1 : kEscapeMilliseconds);
    if (count == 0) return {};
    if (count < 0 && errno != EINTR) return {};
    if (count < 0) continue;
    unsigned char c = 0;
    const ssize_t size = ::read(in_, &c, 1);
    if (size == 1) return c;
    if (size == 0 || errno != EINTR) return {};
  }
}

/// Text that comes faster than it is typed is painted once.
bool LineEditor::more_waits() const {
  pollfd ready{in_, POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0;
}

LineEditor::Result LineEditor::read(std::string_view prompt, std::string_view styled_prompt,
                                    std::string& line) {
  const RawMode raw(in_);
  write(kPasteMarks);  // pasted text comes between marks
  prompt_ = prompt;
  styled_prompt_ = styled_prompt;
  buffer_.set("");
  at_in_history_ = history_.lines().size();
  painted_row_ = 0;
  Step step = Step::More;
  while (step == Step::More) {
    if (!more_waits()) paint(false);
    const std::optional<unsigned char> c = byte(true);
    step = c ? key(*c) : Step::End;
  }
  paint(true);
  write(kNoPasteMarks);
  if (step == Step::Interrupted) return Result::Interrupted;
  if (step == Step::End) return Result::End;
  line = buffer_.text();
  history_.add(line);
  return Result::Line;
}

LineEditor::Step LineEditor::key(unsigned char c) {
  switch (c) {
    case '\r':
    case '\n': return enter() ? Step::Done : Step::More;
    case control('C'): buffer_.set(""); return Step::Interrupted;
    case control('D'):
      if (buffer_.text().empty()) return Step::End;
      buffer_.erase();
      break;
    case control('A'): buffer_.home(); break;
    case control('E'): buffer_.end(); break;
    case control('B'): buffer_.left(); break;
    case control('F'): buffer_.right(); break;
    case control('K'): buffer_.erase_to_end(); break;
    case control('U'): buffer_.erase_to_home(); break;
    case control('W'): buffer_.erase_word(); break;
    case control('P'): move_in_history(true); break;
    case control('N'): move_in_history(false); break;
    case control('L'):
      write("\033[H\033[2J");
      painted_row_ = 0;
      break;
    case control('H'):
    case 0x7f: buffer_.backspace(); break;
    case 0x1b: escape(); break;
    default:
      if (c >= 0x20 || c == '\t') character(c);
  }
  return Step::More;
}

/// A backslash at the end asks for another line.
bool LineEditor::enter() {
  buffer_.end();
  if (!buffer_.text().ends_with('\\') || buffer_.cursor() != buffer_.text().size()) return true;
  buffer_.backspace();
  buffer_.insert("\n");
  return false;
}

void LineEditor::character(unsigned char first) {
  std::string text(1, static_cast<char>(first));
  const size_t size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  while (text.size() < size) {
    const std::optional<unsigned char> next = byte(false);
    if (!next) break;
    text += static_cast<char>(*next);
  }
  if (is_utf8(text)) buffer_.insert(text);
}

void LineEditor::escape() {
  const std::optional<unsigned char> c = byte(false);
  if (!c) return;
  switch (*c) {
    case '\r':
    case '\n': buffer_.insert("\n"); break;
    case 'b': buffer_.word_left(); break;
    case 'f': buffer_.word_right(); break;
    case 0x7f: buffer_.erase_word(); break;
    case 'O':
    case '[': csi(); break;
    default: break;
  }
}

/// Parameters and a final byte, of ECMA-48's control sequences.
void LineEditor::csi() {
  std::string parameters;
  std::optional<unsigned char> c = byte(false);
  for (; c && *c < 0x40 && parameters.size() < 16; c = byte(false))
    parameters += static_cast<char>(*c);
  if (!c) return;
  const bool word = parameters == "1;5" || parameters == "1;3";
  switch (*c) {
    case 'A':
      if (!buffer_.up()) move_in_history(true);
      break;
    case 'B':
      if (!buffer_.down()) move_in_history(false);
      break;
    case 'C': word ? buffer_.word_right() : buffer_.right(); break;
    case 'D': word ? buffer_.word_left() : buffer_.left(); break;
    case 'H': buffer_.home(); break;
    case 'F': buffer_.end(); break;
    case '~':
      if (parameters == "1" || parameters == "7") buffer_.home();
      if (parameters == "4" || parameters == "8") buffer_.end();
      if (parameters == "3") buffer_.erase();
      if (parameters == "200") paste();
      break;
    default: break;
  }
}

/// Up to the mark behind it, or as much as comes.
void LineEditor::paste() {
  constexpr std::string_view kEnd = "\033[201~";
  constexpr size_t kMost = size_t{1} << 22;
  std::string text;
  while (!text.ends_with(kEnd) && text.size() < kMost) {
    const std::optional<unsigned char> c = byte(false);
    if (!c) break;
    text += *c == '\r' ? '\n' : static_cast<char>(*c);
  }
  if (text.ends_with(kEnd)) text.resize(text.size() - kEnd.size());
  buffer_.insert(text);
}

void LineEditor::move_in_history(bool older) {
  const auto& lines = history_.lines();
  if (older ? at_in_history_ == 0 : at_in_history_ == lines.size()) return;
  if (at_in_history_ == lines.size()) draft_ = buffer_.text();
  at_in_history_ += older ? -size_t{1} : size_t{1};
  buffer_.set(at_in_history_ == lines.size() ? draft_ : lines[at_in_history_]);
}

/// All of it anew: terminals are fast, and nothing can be left from before.
void LineEditor::paint(bool last) {
  if (last) buffer_.end();
  const size_t width = columns();
  const std::string& text = buffer_.text();
  std::string out;
  if (painted_row_ > 0) append_format(out, "\033[{}A", painted_row_);
  out += "\r\033[J";
  out += styled_prompt_;
  const size_t indent = text_width(prompt_);
  for (const char c : text) {
    if (c == '\n')
      out += "\r\n" + std::string(indent, ' ');
    else
      out += c;
  }
  const TextPlace begin{0, indent};
  const TextPlace end = place_after(text, begin, width, indent);
  // Behind the last column a terminal waits: this makes it go on.
  if (end.column == 0 && end.row > 0) out += "\r\n";
  const TextPlace cursor =
      last ? end
           : place_after(std::string_view(text).substr(0, buffer_.cursor()), begin, width, indent);
  if (end.row > cursor.row) append_format(out, "\033[{}A", end.row - cursor.row);
  out += "\r";
  if (cursor.column > 0) append_format(out, "\033[{}C", cursor.column);
  painted_row_ = cursor.row;
  write(out);
}

}  // namespace weft
