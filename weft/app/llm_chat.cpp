#include "weft/app/llm_chat.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "weft/app/app.h"
#include "weft/app/interrupt.h"
#include "weft/app/line_editor.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/base/utf8.h"
#include "weft/llm/chat_session.h"

namespace weft {

namespace {

using llm::ChatAnswer;
using llm::ChatSession;

/// Lines of a pipe or a file.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}
  bool read(std::string& line) {
    size_t end = 0;
    while ((end = held_.find('\n')) == std::string::npos) {
      char part[4096];
      const ssize_t size = ::read(fd_, part, sizeof(part));
      if (size < 0 && errno == EINTR) continue;
      if (size > 0) {
        held_.append(part, static_cast<size_t>(size));
        continue;
      }
      if (held_.empty()) return false;
      held_ += '\n';
    }
    line = held_.substr(0, end);
    if (line.ends_with('\r')) line.pop_back();
    held_.erase(0, end + 1);
    return true;
  }

 private:
  int fd_;
  std::string held_;
};

/// A model's words could hold sequences that take over a terminal.
std::string harmless(std::string_view text) {
  std::string out;
  const std::string valid = valid_utf8(text);
  for (size_t at = 0; at < valid.size();) {
    const char32_t c = next_code_point(valid, at);
    const bool control = (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0);
    control ? out += "\xef\xbf\xbd" : (append_utf8(out, c), out);
  }
  return out;
}

class Chat {
 public:
  Chat(const Session& session, llm::Generator& generator, const LlmChatOptions& options, int in)
      : session_(session),
        generator_(generator),
        plan_(options.plan),
        chat_(generator, plan_.made()),
        lines_(in),
        editor_(in, ::fileno(session.out)),
        terminal_(::isatty(in) == 1 && ::isatty(::fileno(session.out)) == 1),
        edits_(terminal_ && session.context.options().term != "dumb") {
    chat_.set_system(options.system);
    history_ = options.history;
    const std::string folder = session.context.options().state_directory();
    if (history_.empty() && !folder.empty()) history_ = folder + "/chat_history";
  }

  int run() {
    load_history();
    if (terminal_)
      session_.print("{}  /help lists commands, Ctrl-C stops an answer, Ctrl-D ends\n",
                     session_.bold(generator_.model_name()));
    std::string line;
    while (!done_ && next_line(line)) {
      try {
        handle(line);
      } catch (const Error& error) {
        failed_ = true;
        std::fflush(session_.out);
        std::fprintf(terminal_ ? session_.out : session_.err, "[%s] %s\n",
                     std::string(error.tag()).c_str(), error.message().c_str());
      }
      std::fflush(session_.out);
    }
    save_history();
    return failed_ && !terminal_ ? kExitFailure : kExitOk;
  }

 private:
  struct Command {
    std::string_view name, what;
    void (Chat::*run)(std::string_view rest);
  };
  static const Command kCommands[];

  bool next_line(std::string& line) {
    if (terminal_ && !edits_) session_.write("> ");
    std::fflush(session_.out);
    if (!edits_) return lines_.read(line);
    while (true) {
      switch (editor_.read("> ", session_.green("> "), line)) {
        case LineEditor::Result::Line: return true;
        case LineEditor::Result::End: return false;
        case LineEditor::Result::Interrupted: session_.write("(/exit or Ctrl-D ends)\n"); break;
      }
      std::fflush(session_.out);
    }
  }

  void handle(std::string_view line) {
    if (line.find_first_not_of(" \t\n") == std::string_view::npos) return;
    if (line[0] != '/')
      return answer(
          [&](auto on_text, auto stop) { return chat_.ask(valid_utf8(line), on_text, stop); });
    const size_t end = std::min(line.find(' '), line.size());
    const std::string_view name = line.substr(0, end);
    std::string_view rest = line.substr(end);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    for (const Command& command : command_list())
      if (command.name == name) return (this->*command.run)(rest);
    fail("llm.chat", "there is no command {}; /help lists them", harmless(name));
  }

  /// One answer; while it comes, Ctrl-C ends it and nothing else. SIGTERM means all of it.
  template <class Ask>
  void answer(Ask ask) {
    const InterruptScope scope(InterruptScope::Of::CtrlC);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    Clock::time_point first = start;
    bool begun = false;
    const auto on_text = [&](std::string_view text) {
      if (!begun) first = Clock::now();
      begun = true;
      if (session_.json) return;
      session_.write(terminal_ ? harmless(text) : std::string(text));
      std::fflush(session_.out);
    };
    const ChatAnswer given = ask(llm::ChatSession::OnText(on_text),
                                 llm::ChatSession::WantsStop(&InterruptScope::requested));
    if (session_.json) return print_json(given);
    session_.write("\n");
    if (terminal_) describe(given, std::chrono::duration<double>(Clock::now() - first).count());
  }

  void print_json(const ChatAnswer& given) const {
    JsonWriter json;
    json.begin_object().field("text", valid_utf8(given.text));
    json.field("finish", finish_name(given.finish));
    json.field("prompt_tokens", given.prompt_tokens).field("tokens", given.tokens);
    session_.print("{}\n", json.end_object().text());
  }

  void describe(const ChatAnswer& given, double seconds) {
    std::string text = strformat("{} tokens", given.tokens);
    if (given.tokens > 1 && seconds > 0)
      append_format(text, ", {:.1f} tokens/s", static_cast<double>(given.tokens - 1) / seconds);
    if (given.finish == llm::Finish::Cancelled) text += ", stopped";
    if (given.finish == llm::Finish::Length) text += ", cut off: no room or max_tokens";
    if (given.forgotten > 0)
      append_format(text, ", {} oldest messages no longer fit", given.forgotten);
    session_.write(session_.colour ? "\033[2m" + text + "\033[0m\n" : text + "\n");
  }

  void help(std::string_view) {
    for (const Command& command : command_list())
      session_.print("{:<10} {}\n", command.name, command.what);
    if (edits_)
      session_.write("A backslash at a line's end, or Alt-Enter, goes on in the next line.\n");
  }
  void clear(std::string_view) { chat_.clear(); }
  void exit(std::string_view) { done_ = true; }
  void retry(std::string_view) {
    answer([&](auto on_text, auto stop) { return chat_.retry(on_text, stop); });
  }
  void system(std::string_view text) {
    if (text.empty())
      session_.print("{}\n", harmless(chat_.system()));
    else
      chat_.set_system(text);
  }
  void save(std::string_view path) {
    if (path.empty()) fail("llm.chat", "/save takes a file's name");
    atomic_write_file(std::string(path), chat_.json() + "\n");
  }
  void load(std::string_view path) {
    if (path.empty()) fail("llm.chat", "/load takes a file's name");
    const MappedFile file{std::string(path)};
    chat_.load(file.text(), path);
    if (terminal_) session_.print("{} messages\n", chat_.messages().size());
  }

  void set(std::string_view rest) {
    if (rest.empty()) return list_settings();
    const size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view name = rest.substr(0, end);
    std::string_view value = rest.substr(end);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    plan_.request.sampling.seed = chat_.request().sampling.seed;  // which /retry changes
    llm::RequestPlan changed = plan_;
    const auto options = request_options(changed);
    const llm::RequestOption& option = find_option(options, name);
    const llm::Texts texts(option.takes_none() && value.empty() ? 0 : 1, std::string(value));
    option.set(texts);
    chat_.request() = changed.made();
    plan_ = changed;
  }

  void list_settings() {
    plan_.request.sampling.seed = chat_.request().sampling.seed;
    for (const llm::RequestOption& o : request_options(plan_))
      session_.print("{:<20} {}\n", o.name, harmless(o.text()));
  }

  static std::span<const Command> command_list();

  void load_history() {
    if (!edits_ || history_.empty() || !file_exists(history_)) return;
    try {
      const MappedFile file(history_);
      editor_.history().load(file.text());
    } catch (const Error&) {
      return;  // an empty file, or one of somebody else: a chat is worth more than its history
    }
  }
  void save_history() {
    if (!edits_ || history_.empty() || editor_.history().lines().empty()) return;
    try {
      if (const size_t slash = history_.rfind('/'); slash != std::string::npos)
        make_directories(history_.substr(0, slash), 0700);
      atomic_write_file(history_, editor_.history().saved());
    } catch (const Error& error) {
      std::fprintf(session_.err, "weft: the history is not saved: %s\n", error.message().c_str());
    }
  }

  const Session& session_;
  llm::Generator& generator_;
  llm::RequestPlan plan_;  // what /set changes
  ChatSession chat_;
  LineReader lines_;
  LineEditor editor_;
  bool terminal_, edits_, done_ = false, failed_ = false;
  std::string history_;
};

constexpr Chat::Command Chat::kCommands[] = {
    {"/clear", "forget the conversation, but not the system message", &Chat::clear},
    {"/exit", "end", &Chat::exit},
    {"/help", "this", &Chat::help},
    {"/load", "FILE: go on with a conversation from /save", &Chat::load},
    {"/quit", "end", &Chat::exit},
    {"/retry", "another answer to the last question", &Chat::retry},
    {"/save", "FILE: write the conversation, as JSON", &Chat::save},
    {"/set", "NAME VALUE: how answers are drawn; NAME: without it; alone: all settings",
     &Chat::set},
    {"/system", "TEXT: what the model is told about its part; alone: shows it", &Chat::system},
};
std::span<const Chat::Command> Chat::command_list() { return kCommands; }

}  // namespace

int run_llm_chat(const Session& session, llm::Generator& generator, const LlmChatOptions& options,
                 int in) {
  return Chat(session, generator, options, in).run();
}

}  // namespace weft
