// Completion of the command line in bash, zsh and fish, written from the command line's own
// description.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace weft {

// The script that `shell` (bash, zsh or fish) reads: subcommands, their options, and the words an
// argument or option may be where those are known.
std::string completion_script(const CLI::App& app, std::string_view shell);

}  // namespace weft
