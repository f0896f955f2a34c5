#include "weft/graph/parse.h"

#include <charconv>
#include <optional>
#include <string>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/graph/schema.h"
#include "weft/graph/verify.h"

namespace weft {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::optional<Op> op_named(std::string_view mnemonic) {
  for (const OpInfo& row : kOps)
    if (mnemonic == row.mnemonic) return row.op;
  return std::nullopt;
}

std::optional<int64_t> number(std::string_view text) {
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return v;
}

std::optional<int64_t> named_value(FieldKind kind, std::string_view text) {
  if (kind == FieldKind::Fold)
    for (int64_t i = 0; i < kFoldCount; ++i)
      if (fold_name(static_cast<Fold>(i)) == text) return i;
  if (kind == FieldKind::Binding)
    for (int64_t i = 0; i < kBindingCount; ++i)
      if (binding_name(static_cast<Binding>(i)) == text) return i;
  return number(text);
}

/// One line, taken apart word by word; knows where it is for errors.
class Line {
 public:
  Line(std::string_view text, size_t number, std::string_view what)
      : text_(text), number_(number), what_(what) {}

  /// The next word, or nothing at the end of the line or a comment.
  std::string_view next() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    word_at_ = at_;
    if (at_ == text_.size() || text_[at_] == '#') return {};
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    return text_.substr(word_at_, at_ - word_at_);
  }
  std::string_view peek() {
    const size_t at = at_;
    const std::string_view word = next();
    at_ = at;
    return word;
  }
  /// A quoted string with \" \\ and \xHH.
  std::string quoted() {
    if (!peek().starts_with('"')) fail_here("expected a quoted name");
    at_ = word_at_ + 1;
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') out += character();
    if (at_ == text_.size()) fail_here("the quoted name has no end");
    ++at_;
    return out;
  }

  template <class... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> pattern, Args&&... args) const {
    fail("parse", "{}: line {} column {}: {}", what_, number_, word_at_ + 1,
         strformat(pattern, std::forward<Args>(args)...));
  }

 private:
  char character() {
    const char c = text_[at_++];
    if (c != '\\') return c;
    if (at_ == text_.size()) fail_here("the quoted name has no end");
    const char kind = text_[at_++];
    if (kind != 'x') return kind;
    uint8_t byte = 0;
    const std::string_view digits = text_.substr(at_, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2)
      fail_here("\\x needs two hexadecimal digits");
    at_ += 2;
    return static_cast<char>(byte);
  }

  std::string_view text_;
  size_t number_;
  std::string_view what_;
  size_t at_ = 0;
  size_t word_at_ = 0;
};

/// `%12` -> 12.
std::optional<int64_t> node_number(std::string_view word) {
  if (!word.starts_with('%')) return std::nullopt;
  const auto n = number(word.substr(1));
  return n && *n >= 0 ? n : std::nullopt;
}

class Parser {
 public:
  Parser(Graph& graph, std::string_view what) : graph_(graph), what_(what) {}

  std::vector<NodeRef> parse(std::string_view text) {
    for (size_t line_number = 1; !text.empty() && !returned_; ++line_number) {
      const size_t end = text.find('\n');
      Line line(text.substr(0, end), line_number, what_);
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      parse_line(line);
    }
    if (!returned_ && last_) roots_.push_back(last_);
    if (!returned_ && !last_) fail("parse", "{}: there is no node in it", what_);
    return std::move(roots_);
  }

 private:
  void parse_line(Line& line) {
    const std::string_view first = line.next();
    if (first.empty()) return;
    if (first == "return") return parse_return(line);
    const auto id = node_number(first);
    if (!id) line.fail_here("expected `%number = op ...`, got `{}`", first);
    if (nodes_.contains(*id)) line.fail_here("%{} is defined twice", *id);
    if (line.next() != "=") line.fail_here("expected `=` after %{}", *id);
    last_ = nodes_[*id] = parse_node(line);
  }

  void parse_return(Line& line) {
    for (auto word = line.next(); !word.empty(); word = line.next())
      roots_.push_back(operand(line, word));
    returned_ = true;
  }

  NodeRef parse_node(Line& line) {
    src_.clear();
    ints_.clear();
    NodeSpec spec{Op::Const, DType::Void, {}, {}, {}, 1};
    parse_op(line, spec);
    parse_dtype(line, spec);
    std::string text;
    if (spec.op == Op::Const) parse_constant(line, spec);
    if (schema(spec.op).text) text = line.quoted();
    while (!line.peek().empty() && line.peek().find('=') == std::string_view::npos) {
      const std::string_view word = line.next();
      src_.push_back(operand(line, word));
    }
    parse_fields(line, spec.op);
    spec.text = text;
    spec.src = src_;
    spec.ints = ints_;
    if (const char* problem = node_problem(spec))
      line.fail_here("{}: {}", info(spec.op).mnemonic, problem);
    return graph_.intern(spec);
  }

  void parse_op(Line& line, NodeSpec& spec) {
    const std::string_view word = line.next();
    const size_t dot = word.find('.');
    const auto op = op_named(word.substr(0, dot));
    if (!op) line.fail_here("unknown op `{}`", word);
    spec.op = *op;
    const Schema& s = schema(*op);
    if (dot == std::string_view::npos) return;
    const auto fold = named_value(FieldKind::Fold, word.substr(dot + 1));
    if (s.count == 0 || s.fields[0].name != "kind" || !fold)
      line.fail_here("`{}` is no kind of {}", word.substr(dot + 1), info(*op).mnemonic);
    ints_.push_back(*fold);
  }

  void parse_dtype(Line& line, NodeSpec& spec) {
    const std::string_view word = line.next();
    auto dtype = dtype_from_name(word);
    if (const size_t x = word.rfind('x'); !dtype && x != std::string_view::npos) {
      dtype = dtype_from_name(word.substr(0, x));
      const auto lanes = number(word.substr(x + 1));
      if (!lanes || *lanes < 2 || *lanes > UINT16_MAX)
        line.fail_here("`{}` is no number of lanes", word);
      spec.lanes = static_cast<uint16_t>(*lanes);
    }
    if (!dtype) line.fail_here("unknown dtype `{}`", word);
    spec.dtype = *dtype;
  }

  void parse_constant(Line& line, const NodeSpec& spec) {
    const std::string_view word = line.next();
    const auto v = spec.dtype == DType::Void ? std::nullopt : Value::parse(spec.dtype, word);
    if (!v) line.fail_here("`{}` is no {} constant", word, name(spec.dtype));
    ints_.push_back(static_cast<int64_t>(v->raw_bits()));
  }

  /// `%3`, `8` (an index) or `0.5:f32`.
  NodeRef operand(Line& line, std::string_view word) {
    if (const auto id = node_number(word)) {
      const auto at = nodes_.find(*id);
      if (at == nodes_.end()) line.fail_here("{} is not defined above", word);
      return at->second;
    }
    const size_t colon = word.find(':');
    if (colon == std::string_view::npos) {
      const auto v = number(word);
      if (!v) line.fail_here("expected %number, an integer or value:dtype, got `{}`", word);
      return graph_.index(*v);
    }
    const auto dtype = dtype_from_name(word.substr(colon + 1));
    const auto v =
        dtype && *dtype != DType::Void ? Value::parse(*dtype, word.substr(0, colon)) : std::nullopt;
    if (!v) line.fail_here("`{}` is no constant", word);
    return graph_.constant(*v);
  }

  /// `name=1 axes=0,1`, in the order of the schema.
  void parse_fields(Line& line, Op op) {
    const Schema& s = schema(op);
    size_t field = ints_.size();
    for (auto word = line.next(); !word.empty(); word = line.next(), ++field) {
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos) line.fail_here("`{}` stands after the fields", word);
      if (field >= s.count || word.substr(0, equals) != s.fields[field].name)
        line.fail_here("{} has no field `{}` here; its fields are: {}", info(op).mnemonic,
                       word.substr(0, equals), info(op).schema);
      parse_values(line, s.fields[field], word.substr(equals + 1));
    }
  }
  void parse_values(Line& line, const Field& field, std::string_view values) {
    while (true) {
      const size_t comma =
          field.kind == FieldKind::List ? values.find(',') : std::string_view::npos;
      const auto v = named_value(field.kind, values.substr(0, comma));
      if (!v) line.fail_here("`{}` is no value of {}", values, field.name);
      ints_.push_back(*v);
      if (comma == std::string_view::npos) return;
      values = values.substr(comma + 1);
    }
  }

  Graph& graph_;
  std::string_view what_;
  std::unordered_map<int64_t, NodeRef> nodes_;
  std::vector<NodeRef> roots_;
  std::vector<NodeRef> src_;
  std::vector<int64_t> ints_;
  NodeRef last_ = nullptr;
  bool returned_ = false;
};

}  // namespace

std::vector<NodeRef> parse_graph(Graph& graph, std::string_view text, std::string_view what) {
  const Graph::Building building(graph);
  return Parser(graph, what).parse(text);
}

}  // namespace weft
