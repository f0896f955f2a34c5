#include "tests/support/case_file.h"

#include <charconv>
#include <fstream>

#include "weft/base/error.h"

namespace weft {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

/// What stands between `open` and `close`, which must both be there.
std::string_view between(std::string_view text, char open, char close) {
  const size_t from = text.find(open), to = text.rfind(close);
  if (from == std::string_view::npos || to == std::string_view::npos || to < from)
    fail("case", "`{}` is no array: it has no {}...{}", text, open, close);
  return text.substr(from + 1, to - from - 1);
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> out;
  while (!trimmed(list).empty()) {
    const size_t comma = list.find(',');
    out.push_back(trimmed(list.substr(0, comma)));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return out;
}

int64_t parse_int(std::string_view text) {
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size())
    fail("case", "`{}` is no integer", text);
  return v;
}

class CaseReader {
 public:
  explicit CaseReader(const std::string& path) : path_(path), in_(path) {
    if (!in_) fail_runtime("case", "cannot open {}", path);
  }

  std::vector<TextCase> read() {
    std::string line;
    while (std::getline(in_, line)) {
      ++number_;
      try {
        take(line);
      } catch (const Error& error) {
        fail("case", "{}:{}: {}", path_, number_, error.message());
      }
    }
    return std::move(cases_);
  }

 private:
  void take(std::string_view line) {
    const bool indented = line.starts_with(' ');
    const std::string_view text = trimmed(line);
    if (text.empty() || text.starts_with('#')) return;
    if (text.starts_with("==")) return start(trimmed(text.substr(2)));
    if (cases_.empty()) fail("case", "a case begins with `== name`");
    if (!indented) return open(text);
    add(text);
  }
  void start(std::string_view name) {
    TextCase c;
    c.file = path_;
    c.name = name;
    c.line = number_;
    cases_.push_back(std::move(c));
    block_.clear();
  }
  void open(std::string_view block) {
    block_ = block;
    for (const char* known : {"graph", "run", "expect", "error", "rules"})
      if (block == known) {
        cases_.back().has_rules |= block == "rules";
        return;
      }
    fail("case", "`{}` is no block; blocks are graph, run, expect, error and rules", block);
  }
  void add(std::string_view text) {
    TextCase& c = cases_.back();
    if (block_ == "graph")
      c.graph += std::string(text) + "\n";
    else if (block_ == "run")
      bind(c, text);
    else if (block_ == "expect")
      c.expected.push_back(parse_array(text));
    else if (block_ == "error")
      c.error += text;
    else if (block_ == "rules")
      c.rules.emplace_back(text);
    else
      fail("case", "this line is in no block");
  }
  static void bind(TextCase& c, std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) fail("case", "expected `name = value`");
    const std::string_view name = trimmed(text.substr(0, equals));
    const std::string_view value = trimmed(text.substr(equals + 1));
    if (value.find('[') == std::string_view::npos) {
      c.inputs.variables[std::string(name)] = parse_int(value);
      return;
    }
    const auto slot = static_cast<size_t>(parse_int(name.substr(1)));
    if (slot > 99) fail("case", "params are p0 to p99");
    if (c.inputs.params.size() <= slot) c.inputs.params.resize(slot + 1);
    c.inputs.params[slot] = parse_array(value);
  }

  std::string path_;
  std::ifstream in_;
  int number_ = 0;
  std::string block_;
  std::vector<TextCase> cases_;
};

}  // namespace

eval::Array parse_array(std::string_view text) {
  const std::string_view type = trimmed(text.substr(0, text.find('(')));
  const auto dtype = dtype_from_name(type);
  if (!dtype || *dtype == DType::Void) fail("case", "`{}` is no dtype", type);
  const size_t close = text.find(')');
  eval::Extents extents;
  for (std::string_view e : split(between(text.substr(0, close + 1), '(', ')')))
    extents.push_back(parse_int(e));
  eval::Array out(*dtype, extents);
  const auto elements = split(between(text, '[', ']'));
  if (static_cast<int64_t>(elements.size()) != out.count())
    fail("case", "{} elements for an array of {}", elements.size(), out.count());
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto v = Value::parse(*dtype, elements[i]);
    if (!v) fail("case", "`{}` is no {}", elements[i], type);
    out.set(static_cast<int64_t>(i), *v);
  }
  return out;
}

std::vector<TextCase> read_cases(const std::string& path) { return CaseReader(path).read(); }

}  // namespace weft
