#include "weft/app/completion.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft {

namespace {

// An option or the positional argument of a command, as shells want it.
struct Word {
  std::string name;   // "--epochs"; empty for the argument
  std::string what;   // its line of help
  std::string words;  // what it may be, separated by spaces; empty: anything
  bool takes_value;
};

struct Command {
  std::string name, what;
  std::vector<Word> words;
};

// CLI11 keeps the values of IsMember in the type's name: "TEXT:{cosine,constant}".
std::string allowed(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return "";
  std::string words = type.substr(open + 1, close - open - 1);
  for (char& c : words)
    if (c == ',') c = ' ';
  return words;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    Command command{sub->get_name(), sub->get_description(), {}};
    for (const CLI::Option* option : sub->get_options()) {
      const auto& names = option->get_lnames();
      if (names.empty() && !option->get_positional()) continue;
      command.words.push_back({names.empty() ? "" : "--" + names[0], option->get_description(),
                               allowed(*option), option->get_items_expected_max() > 0});
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

// Every shell's strings in single quotes: fish escapes one with a backslash, the others leave and
// return.
std::string quoted(const std::string& text, bool fish = false) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += (fish ? "\\'" : "'\\''") : out += c;
  return out + "'";
}

// What may stand after the command's name.
std::string all_words(const Command& command) {
  std::string words;
  for (const Word& w : command.words)
    append_format(words, "{}{}", words.empty() ? "" : " ", w.name.empty() ? w.words : w.name);
  return words;
}

// `case` branches for options whose values are known; `offer` writes what offers words.
template <class Offer>
std::string value_branches(const std::vector<Command>& commands, Offer&& offer) {
  std::string text;
  for (const Command& c : commands)
    for (const Word& w : c.words)
      if (!w.name.empty() && !w.words.empty())
        append_format(text, "    {}:{}) {}; return ;;\n", c.name, w.name, offer(w.words));
  return text;
}

std::string bash_script(const std::vector<Command>& commands) {
  const auto offer = [](const std::string& words) {
    return strformat("COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))", words);
  };
  std::string names, branches;
  for (const Command& c : commands) {
    append_format(names, "{} ", c.name);
    append_format(branches, "    {}) {} ;;\n", c.name, offer(all_words(c)));
  }
  return strformat(
      "_weft() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  if [[ $COMP_CWORD == 1 ]]; then {}; return; fi\n"
      "  case \"${{COMP_WORDS[1]}}:$before\" in\n{}  esac\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "}}\ncomplete -o default -F _weft weft\n",
      offer(names + "--help --version"), value_branches(commands, offer), branches);
}

std::string zsh_script(const std::vector<Command>& commands) {
  std::string text =
      "#compdef weft\n_weft() {\n  local -a found\n  if (( CURRENT == 2 )); then\n    found=(";
  for (const Command& c : commands)
    append_format(text, "\n      {}", quoted(c.name + ":" + c.what));
  text += ")\n    _describe command found; return\n  fi\n";
  append_format(text, "  case \"${{words[2]}}:${{words[CURRENT-1]}}\" in\n{}  esac\n",
                value_branches(commands, [](const std::string& w) { return "compadd -- " + w; }));
  text += "  case \"${words[2]}\" in\n";
  for (const Command& c : commands) {
    append_format(text, "    {})\n      found=(", c.name);
    std::string values;
    for (const Word& w : c.words) {
      if (w.name.empty())
        values = w.words;
      else
        append_format(text, "\n        {}", quoted(w.name + ":" + w.what));
    }
    text += ")\n      _describe option found\n";
    if (!values.empty()) append_format(text, "      compadd -- {}\n", values);
    text += "      _files ;;\n";
  }
  return text + "  esac\n}\n(( $+functions[compdef] )) && compdef _weft weft\n";
}

std::string fish_script(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& c : commands) {
    append_format(text, "complete -c weft -n __fish_use_subcommand -f -a {} -d {}\n", c.name,
                  quoted(c.what, true));
    const std::string here =
        strformat("complete -c weft -n '__fish_seen_subcommand_from {}'", c.name);
    for (const Word& w : c.words) {
      const std::string values = w.words.empty() ? "" : " -a " + quoted(w.words, true);
      if (w.name.empty() && values.empty()) continue;
      text += here;
      if (!w.name.empty()) append_format(text, " -l {}", w.name.substr(2));
      if (!w.name.empty() && w.takes_value) text += values.empty() ? " -r" : " -x";
      append_format(text, "{} -d {}\n", values, quoted(w.what, true));
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, std::string_view shell) {
  const std::vector<Command> commands = commands_of(app);
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  fail("completion", "'{}' is not a shell that this is written for: bash, zsh or fish", shell);
}

}  // namespace weft
