#include "weft/run/repro_file.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/options.h"
#include "weft/graph/parse.h"
#include "weft/graph/print.h"
#include "weft/graph/tuple.h"
#include "weft/graph/verify.h"
#include "weft/rewrite/calls.h"

namespace weft {
namespace {

constexpr int64_t kMostParams = 1 << 16;
constexpr std::string_view kHeader = "weft-repro 1";

// What decides which code there is, and what it does; nothing that names a file or a program.
constexpr std::string_view kDeciding[] = {"DEV",           "THREADS",  "ISA", "RULES",
                                          "PASSES",        "BEAM",     "JIT", "KEEP_CONSTANTS",
                                          "DETERMINISTIC", "CHECK_NAN"};

std::string one_line(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return out;
}

void print_data(std::string& out, int64_t slot, const ReproData& data) {
  append_format(out, "data {} {}", slot, name(data.dtype));
  for (int64_t d : data.shape) append_format(out, " {}", d);
  out += " :";
  for (std::byte b : data.bytes) append_format(out, "{:02x}", static_cast<unsigned>(b));
  out += '\n';
}

/// The lines before the graph, one fact each.
class Reader {
 public:
  Reader(std::string_view text, std::string_view what) : rest_(text), what_(what) {}

  Repro read() {
    if (next_line() != kHeader) bad("the first line is not '{}'", kHeader);
    while (!in_graph_) fact(next_line());
    out_.roots = parse_graph(*out_.graph, rest_, strformat("{}, after line {}", what_, line_));
    check();
    inline_calls();
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> pattern, Args&&... args) const {
    fail("repro.format", "{}:{}: {}", what_, line_,
         strformat(pattern, std::forward<Args>(args)...));
  }

  std::string_view next_line() {
    if (rest_.empty()) bad("it ends before the line 'graph'");
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    return line;
  }

  static std::string_view take_word(std::string_view& line) {
    const size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return word;
  }

  template <class T = int64_t>
  T number(std::string_view word) const {
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || word.empty())
      bad("'{}' is no number", word);
    return value;
  }

  void fact(std::string_view line) {
    if (line.empty() || line.starts_with("#")) return;
    const std::string_view word = take_word(line);
    if (word == "graph")
      in_graph_ = true;
    else if (word == "failed")
      out_.failed = line;
    else if (word == "build")
      out_.build = line;
    else if (word == "isa")
      out_.isa = line;
    else if (word == "seed")
      out_.seed = number<uint64_t>(line);
    else if (word == "option")
      option(line);
    else if (word == "bind")
      bind(line);
    else if (word == "data")
      data(line);
    else
      bad("'{}' is none of failed, build, isa, seed, option, bind, data and graph", word);
  }

  void option(std::string_view line) {
    const size_t equals = line.find('=');
    std::string_view name = line.substr(0, equals);
    if (name.starts_with("WEFT_")) name.remove_prefix(5);
    if (equals == line.npos || std::ranges::find(kDeciding, name) == std::end(kDeciding))
      bad("'{}' is no option that a repro file may set", line);
    out_.options.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }

  void bind(std::string_view line) {
    const std::string_view name = take_word(line);
    out_.variables[std::string(name)] = number(line);
  }

  void data(std::string_view line) {
    const int64_t slot = number(take_word(line));
    const std::string_view type = take_word(line);
    const std::optional<DType> dtype = dtype_from_name(type);
    if (!dtype || *dtype == DType::Index || bits(*dtype) % 8 != 0 || bits(*dtype) == 0)
      bad("'{}' is no dtype of data", type);
    ReproData data{*dtype, {}, {}};
    while (!line.starts_with(':') && !line.empty()) data.shape.push_back(number(take_word(line)));
    if (line.empty()) bad("data without ':'");
    data.bytes = hex(line.substr(1));
    if (bytes_of(data) != static_cast<int64_t>(data.bytes.size()))
      bad("{} bytes of data for another shape", data.bytes.size());
    out_.data[slot] = std::move(data);
  }

  int64_t bytes_of(const ReproData& data) const {
    int64_t bytes = bits(data.dtype) / 8;
    for (int64_t d : data.shape)
      if (d < 0 || __builtin_mul_overflow(bytes, d, &bytes)) bad("a size of data is too large");
    return bytes;
  }

  static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }
  std::vector<std::byte> hex(std::string_view text) const {
    std::vector<std::byte> out;
    out.reserve(text.size() / 2);
    if (text.size() % 2 != 0) bad("data with half a byte");
    for (size_t i = 0; i < text.size(); i += 2) {
      const int high = digit(text[i]), low = digit(text[i + 1]);
      if (high < 0 || low < 0) bad("data that is not hexadecimal");
      out.push_back(static_cast<std::byte>(high * 16 + low));
    }
    return out;
  }

  /// What would reach beyond the file: memory of a context, kernels of somebody else's.
  static bool is_foreign(Op op) {
    return op == Op::Buffer || op == Op::Bind || op == Op::Function || op == Op::Custom;
  }

  void check() const {
    if (out_.roots.empty()) bad("its graph is empty");
    check_tensor_graph(out_.roots, what_);
    for (NodeRef n : Toposort(out_.roots)) {
      if (is_foreign(n->op)) bad("its graph has a {}, which no repro file may", summary(n));
      if (n->op == Op::Variable) check_variable(n);
      if (n->op == Op::Param && !is_inner_param(n) && param_slot(n) >= kMostParams)
        bad("it has a param {}; there are at most {}", param_slot(n), kMostParams);
    }
    for (NodeRef root : out_.roots)
      if (root->dtype == DType::Void || root->dtype == DType::Index)
        bad("it returns a {}, which is no array", summary(root));
  }

  /// Functions are written once, whoever calls them; a program is what they compute.
  void inline_calls() {
    const InlinedCalls inlined(*out_.graph, out_.roots);
    for (NodeRef& root : out_.roots) root = inlined.image(root);
  }

  void check_variable(NodeRef n) const {
    const auto at = out_.variables.find(std::string(n->text()));
    if (at == out_.variables.end()) bad("nothing binds the variable '{}'", n->text());
    const int64_t v = at->second, multiple = n->int_arg(2);
    if (v < n->vmin || v > n->vmax || (multiple > 1 && v % multiple != 0))
      bad("the variable '{}' cannot be {}: it is {} to {}", n->text(), v, n->vmin, n->vmax);
  }

  std::string_view rest_, what_;
  int line_ = 0;
  bool in_graph_ = false;
  Repro out_;
};

}  // namespace

std::string print_repro(const Repro& repro) {
  std::string out = strformat("{}\n", kHeader);
  const auto fact = [&out](std::string_view name, std::string_view value) {
    if (!value.empty()) append_format(out, "{} {}\n", name, one_line(value));
  };
  fact("failed", repro.failed);
  fact("build", repro.build);
  fact("isa", repro.isa);
  for (const auto& [name, value] : repro.options)
    append_format(out, "option {}={}\n", name, one_line(value));
  append_format(out, "seed {}\n", repro.seed);
  for (const auto& [name, value] : repro.variables) append_format(out, "bind {} {}\n", name, value);
  for (const auto& [slot, data] : repro.data) print_data(out, slot, data);
  return out + "graph\n" + print_graph(repro.roots);
}

Repro parse_repro(std::string_view text, std::string_view what) {
  return Reader(text, what).read();
}

Repro read_repro(const std::string& path) {
  const MappedFile file(path);
  return parse_repro(file.text(), path);
}

std::vector<std::pair<std::string, std::string>> repro_options(const Options& options) {
  std::vector<std::pair<std::string, std::string>> out;
  const Options initial;
  for (std::string_view name : kDeciding)
    if (std::string value = options.text(name); value != initial.text(name))
      out.emplace_back(strformat("WEFT_{}", name), std::move(value));
  return out;
}

Options options_of(const Repro& repro, const Options& base) {
  Options options = base;
  const Options initial;
  for (std::string_view name : kDeciding) options.set(name, initial.text(name));
  for (const auto& [name, value] : repro.options) options.set(name.substr(5), value);
  return options;
}

}  // namespace weft
