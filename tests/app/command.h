// A command as users meet it: its exit code, and what it wrote.
#pragma once

#include <string>
#include <vector>

#include "tests/io/scratch_dir.h"
#include "weft/app/app.h"

namespace weft {

struct CommandOutcome {
  int code;
  std::string out, err;
  std::string text() const { return out + err; }
  bool has(std::string_view part) const { return text().find(part) != std::string::npos; }
};

/// All that was written to a file of tmpfile(), which is closed.
inline std::string taken(std::FILE* file) {
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

/// run_command({"llm", "inspect", path}).
inline CommandOutcome run_command(const std::vector<std::string>& words) {
  std::vector<const char*> arguments = {"weft"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::FILE *out = std::tmpfile(), *err = std::tmpfile();
  const int code = run_app(arguments, out, err);
  return {code, taken(out), taken(err)};
}

/// Of `weft GROUP ...`, with a directory of its own.
class CommandGroupTest : public ScratchDir {
 protected:
  using Outcome = CommandOutcome;
  explicit CommandGroupTest(std::string group) : group_(std::move(group)) {}
  Outcome weft(std::vector<std::string> words) const {
    words.insert(words.begin(), group_);
    return run_command(words);
  }
  static bool has(const Outcome& o, std::string_view part) { return o.has(part); }

 private:
  std::string group_;
};

}  // namespace weft
