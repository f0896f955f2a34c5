#include "weft/base/options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <iterator>

#include "weft/base/error.h"
#include "weft/base/names.h"

extern char** environ;

namespace weft {

namespace {

[[noreturn]] void bad_value(std::string_view name, std::string_view value, std::string_view want) {
  fail("context.options", "WEFT_{}: got \"{}\"; expected {}", name, value, want);
}

int64_t parse_int(std::string_view name, std::string_view value, int64_t least, int64_t most) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = error == std::errc() && end == value.data() + value.size();
  if (!whole || number < least || number > most) {
    bad_value(name, value, strformat("a whole number from {} to {}", least, most));
  }
  return number;
}

bool parse_bool(std::string_view name, std::string_view value) {
  if (value == "1" || value == "true" || value == "on" || value == "yes") return true;
  if (value == "0" || value == "false" || value == "off" || value == "no" || value == "") {
    return false;
  }
  bad_value(name, value, "0 or 1");
}

int64_t parse_bytes(std::string_view name, std::string_view value) {
  constexpr std::string_view kWant = "a number of bytes such as 1000000, 512K, 300M or 4G";
  int shift = 0;
  std::string_view digits = value;
  if (!digits.empty()) {
    const char unit = digits.back();
    shift = unit == 'K' || unit == 'k' ? 10 : unit == 'M' || unit == 'm' ? 20 : 0;
    if (unit == 'G' || unit == 'g') shift = 30;
    if (shift != 0) digits.remove_suffix(1);
  }
  int64_t number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || number < 0 || number > (INT64_MAX >> shift)) bad_value(name, value, kWant);
  return number << shift;
}

constexpr OptionRow kOptionRows[] = {
#define INT(NAME, field, initial, least, most, doc) {"WEFT_" #NAME, "INT", #initial, doc},
#define BOOL(NAME, field, initial, doc) {"WEFT_" #NAME, "BOOL", #initial, doc},
#define BYTES(NAME, field, initial, doc) {"WEFT_" #NAME, "BYTES", #initial, doc},
#define TEXT(NAME, field, initial, doc) {"WEFT_" #NAME, "TEXT", initial, doc},
#define SYSTEM(NAME, field, doc) {#NAME, "SYSTEM", "", doc},
#include "weft/base/options.def"
};

[[noreturn]] void unknown_option(std::string_view name) {
  std::string_view names[std::size(kOptionRows)];
  size_t count = 0;
  for (const OptionRow& row : kOptionRows) {
    if (std::string_view(row.name).starts_with("WEFT_")) names[count++] = row.name;
  }
  const std::string whole = "WEFT_" + std::string(name);
  fail("context.options", "there is no option {}{}; `weft --help` lists them, unset it to go on",
       whole, did_you_mean(whole, {names, count}));
}

void set_system(Options& options, std::string_view name, std::string_view value) {
#define INT(NAME, field, initial, least, most, doc)
#define BOOL(NAME, field, initial, doc)
#define BYTES(NAME, field, initial, doc)
#define TEXT(NAME, field, initial, doc)
#define SYSTEM(NAME, field, doc) \
  if (name == #NAME) options.field = value;
#include "weft/base/options.def"
}

}  // namespace

void Options::set(std::string_view name, std::string_view value) {
#define INT(NAME, field, initial, least, most, doc) \
  if (name == #NAME) return void(field = parse_int(name, value, least, most));
#define BOOL(NAME, field, initial, doc) \
  if (name == #NAME) return void(field = parse_bool(name, value));
#define BYTES(NAME, field, initial, doc) \
  if (name == #NAME) return void(field = parse_bytes(name, value));
#define TEXT(NAME, field, initial, doc) \
  if (name == #NAME) return void(field = value);
#define SYSTEM(NAME, field, doc)
#include "weft/base/options.def"
  unknown_option(name);
}

std::string Options::text(std::string_view name) const {
#define INT(NAME, field, ...) \
  if (name == #NAME) return std::to_string(field);
#define BOOL(NAME, field, ...) INT(NAME, field)
#define BYTES(NAME, field, ...) INT(NAME, field)
#define TEXT(NAME, field, ...) \
  if (name == #NAME) return field;
#define SYSTEM(NAME, field, doc) TEXT(NAME, field)
#include "weft/base/options.def"
  unknown_option(name);
}

Options Options::parse(const char* const* environment) {
  Options options;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals), value = entry.substr(equals + 1);
    if (name.starts_with("WEFT_")) {
      options.set(name.substr(5), value);
    } else {
      set_system(options, name, value);
    }
  }
  return options;
}

namespace {

// `sudo` may leave HOME as it was: what root makes there, that user could not write to. Nothing is
// kept then, but where XDG's variables or WEFT_CACHE_DIR say so.
bool is_of_another_user(const std::string& folder) {
  struct stat info;
  return ::geteuid() == 0 && ::stat(folder.c_str(), &info) == 0 && info.st_uid != 0;
}

}  // namespace

Options Options::from_environment() {
  Options options = parse(environ);
  if (is_of_another_user(options.home)) options.home.clear();
  return options;
}

std::string Options::cache_directory() const {
  if (!cache_dir.empty()) return cache_dir;
  // The XDG specification: a relative path is to be ignored.
  if (xdg_cache_home.starts_with("/")) return xdg_cache_home + "/weft";
  return home.empty() ? "" : home + "/.cache/weft";
}

std::string Options::state_directory() const {
  if (xdg_state_home.starts_with("/")) return xdg_state_home + "/weft";
  return home.empty() ? "" : home + "/.local/state/weft";
}

const OptionRow* option_rows(size_t& count) {
  count = std::size(kOptionRows);
  return kOptionRows;
}

}  // namespace weft
