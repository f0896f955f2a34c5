// Evaluator: runs a template's tree over values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/text/jinja/syntax.h"
#include "weft/text/template.h"

namespace weft::text::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;

  /// By place or by name; nullptr: not given.
  const Value* find(size_t place, std::string_view name) const;
  Value get(size_t place, std::string_view name, Value otherwise) const {
    const Value* v = find(place, name);
    return v != nullptr ? *v : otherwise;
  }
  Arguments without(size_t count) const;  // the first `count` by place
};

/// A level of recursion, of which there are so many that a small stack has room for them.
class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) {
    if (++depth_ > 1000) throw Problem{"template.limit", "macros call each other too deep"};
  }
  ~Deeper() { --depth_; }

 private:
  int& depth_;
};

class Evaluator {
 public:
  Evaluator(Workspace& work, const RenderOptions& options) : work_(work), options_(options) {}
  /// Of a dict of variables. Throws Problem; place() is then where.
  std::string run(const Block& block, const Value& variables);
  Place place() const { return place_; }
  Workspace& work() { return work_; }
  const RenderOptions& options() const { return options_; }

  // expressions.cpp
  Value evaluate(const Expression& e);
  Value attribute(const Value& of, std::string_view name);
  Value item(const Value& of, const Value& index);
  /// a.b.0 of a value, as filters name them.
  Value path(const Value& of, const Value& attribute);
  Value call(const Value& function, const Arguments& arguments);

  // filters.cpp, tests.cpp, methods.cpp, functions.cpp
  Value filter(std::string_view name, const Value& of, const Arguments& arguments);
  bool test(std::string_view name, const Value& of, const Arguments& arguments);
  Value method(const Value& of, std::string_view name, const Arguments& arguments);
  Value global(std::string_view name, const Arguments& arguments);

 private:
  enum class Flow : uint8_t { On, Break, Continue };
  Flow run_block(const Block& block);
  Flow run_in(Scope* scope, const Block& block);
  Flow run_statement(const Statement& s);
  Flow run_if(const Statement& s);
  Flow run_for(const Statement& s);
  Flow run_loop(const Statement& s, const Value& iterated, int depth);
  Value call_loop(const Loop& loop, const Arguments& arguments);
  std::span<const Value> filtered(const Statement& s, std::span<const Value> items);
  Flow run_with(const Statement& s);
  void run_generation(const Statement& s);
  void run_set_block(const Statement& s);
  void define_macro(const Statement& s);
  void run_call_block(const Statement& s);
  void emit(std::string_view text);
  void emit(const Value& v);
  Value captured(Scope* scope, const Block& block);
  void assign(const Expression& target, const Value& value);
  void set(std::string_view name, const Value& value);

  Value lookup(std::string_view name);
  Value function_attribute(const Function& f, std::string_view name);
  Value constant_list(const Expression& e);
  Value dict(const Expression& e);
  Value slice(const Expression& e);
  Value unary(const Expression& e);
  Value binary(const Expression& e);
  Value compare(const Expression& e);
  Value concatenated(const Expression& e);
  Value conditional(const Expression& e);
  Value filtered(const Expression& e);
  Value tested(const Expression& e);
  Value called(const Expression& e);
  Arguments arguments_of(const CallArguments& call);
  Value call_macro(const Function& f, const Arguments& arguments);

  Workspace& work_;
  const RenderOptions& options_;
  Scope* scope_ = nullptr;
  TextBuilder* out_ = nullptr;
  const TextBuilder* root_ = nullptr;
  Value block_value_;  // what a block's filters start from
  Place place_;
  int depth_ = 0;  // of evaluate() and run_block() in each other
};

/// What happens to be undefined is an error with its name.
void require_defined(const Value& v);
int64_t integer_of(const Value& v, std::string_view what);
/// Whether values of this kind have a method of that name.
bool has_method(const Value& of, std::string_view name);
bool is_global(std::string_view name);
Value loop_attribute(const Loop& loop, std::string_view name);
/// left op right of Python's numbers, texts and lists.
Value arithmetic(std::string_view operation, const Value& left, const Value& right,
                 Workspace& work);
/// Python's seq[from:to:step]; null ends are those of the sequence.
Value sliced(const Value& of, const Value& from, const Value& to, const Value& step,
             Workspace& work);
/// str.format and %.
Value formatted(std::string_view pattern, const Arguments& arguments, Evaluator& evaluator);
Value printf_formatted(std::string_view pattern, std::span<const Value> values, Workspace& work);
std::string strftime_text(std::string_view pattern, int64_t seconds);

}  // namespace weft::text::jinja
