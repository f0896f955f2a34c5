#include "weft/app/commands.h"

namespace weft {

std::string Session::styled(const char* code, std::string_view text) const {
  return colour ? strformat("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace weft
