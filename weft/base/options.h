// Options: every WEFT_ environment variable as a plain struct, generated from options.def.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

struct Options {
#define INT(NAME, field, initial, least, most, doc) int64_t field = initial;
#define BOOL(NAME, field, initial, doc) bool field = initial;
#define BYTES(NAME, field, initial, doc) int64_t field = initial;
#define TEXT(NAME, field, initial, doc) std::string field = initial;
#define SYSTEM(NAME, field, doc) std::string field;
#include "weft/base/options.def"

  // Parses NAME=value strings ending with nullptr. Unknown WEFT_ names and bad values are Errors.
  static Options parse(const char* const* environment);
  static Options from_environment();  // the process's own

  // Sets one option by its NAME, as the command line does.
  void set(std::string_view name, std::string_view value);
  // Its value, as text that set() takes.
  std::string text(std::string_view name) const;

  // Whether a terminal is to get nothing but text: NO_COLOR is set, or TERM is dumb.
  bool plain() const { return !no_color.empty() || term == "dumb"; }

  // cache_dir, or where the XDG specification puts it; empty when there is no home at all.
  std::string cache_directory() const;
  // Where the XDG specification puts what is kept between runs; empty when there is no home at all.
  std::string state_directory() const;
};

// One row of options.def, for `weft --help` and the docs.
struct OptionRow {
  const char* name;     // "WEFT_DEBUG"
  const char* type;     // "INT", "BOOL", "BYTES", "TEXT", "SYSTEM"
  const char* initial;  // as written in the table
  const char* doc;
};
const OptionRow* option_rows(size_t& count);

}  // namespace weft
