// Value: what a chat template computes with. Immutable but for namespaces, and all in one
// Workspace, which bounds memory and steps and frees everything at once.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/format.h"

namespace weft::text::jinja {

/// What goes wrong in an evaluation, before anybody knows where in the template.
struct Problem {
  const char* code;
  std::string text;
};
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> pattern, Args&&... args) {
  throw Problem{"template.value", strformat(pattern, std::forward<Args>(args)...)};
}

struct Pair;
struct Namespace;
struct Loop;
struct Function;

class Value {
 public:
  // The order of what can be compared by number comes first: Bool, Int, Float.
  enum class Kind : uint8_t {
    Undefined,
    None,
    Bool,
    Int,
    Float,
    Text,
    List,
    Tuple,
    Dict,
    Namespace,
    Loop,
    Function,
    Cycler
  };

  constexpr Value() = default;  // undefined
  static Value undefined(std::string_view name) {
    return {Kind::Undefined, name.data(), name.size()};
  }
  static Value none() { return {Kind::None, nullptr, 0}; }
  static Value boolean(bool b) { return number(Kind::Bool, b ? 1 : 0); }
  static Value integer(int64_t i) { return number(Kind::Int, i); }
  static Value real(double d) {
    Value v;
    v.kind_ = Kind::Float;
    v.real_ = d;
    return v;
  }
  /// The bytes stay where they are: in the template or in the workspace.
  static Value text(std::string_view t) { return {Kind::Text, t.data(), t.size()}; }
  static Value list(std::span<const Value> v) { return {Kind::List, v.data(), v.size()}; }
  static Value tuple(std::span<const Value> v) { return {Kind::Tuple, v.data(), v.size()}; }
  /// A pair with names: what groupby gives.
  static Value group(std::span<const Value> two) {
    Value v = tuple(two);
    v.group_ = true;
    return v;
  }
  static Value dict(std::span<const Pair> v);
  static Value of(Namespace* n) { return {Kind::Namespace, n, 0}; }
  static Value of(const Loop* l) { return {Kind::Loop, l, 0}; }
  static Value of(const Function* f) { return {Kind::Function, f, 0}; }
  static Value cycler(const Loop* l) { return {Kind::Cycler, l, 0}; }

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  bool is_number() const { return kind_ >= Kind::Bool && kind_ <= Kind::Float; }
  bool is_integer() const { return kind_ == Kind::Bool || kind_ == Kind::Int; }
  bool is_group() const { return group_; }
  bool is_list() const { return kind_ == Kind::List || kind_ == Kind::Tuple; }

  int64_t as_integer() const { return integer_; }  // of Bool and Int
  double as_real() const { return kind_ == Kind::Float ? real_ : static_cast<double>(integer_); }
  std::string_view as_text() const { return {static_cast<const char*>(pointer_), size_}; }
  std::span<const Value> items() const { return {static_cast<const Value*>(pointer_), size_}; }
  std::span<const Pair> pairs() const;
  Namespace* as_namespace() const {
    return const_cast<Namespace*>(static_cast<const Namespace*>(pointer_));
  }
  /// Of Loop and Cycler.
  Loop* as_loop() const { return const_cast<Loop*>(static_cast<const Loop*>(pointer_)); }
  const Function* as_function() const { return static_cast<const Function*>(pointer_); }

 private:
  Value(Kind kind, const void* pointer, size_t size)
      : kind_(kind), size_(static_cast<uint32_t>(size)), pointer_(pointer) {}
  static Value number(Kind kind, int64_t i) {
    Value v;
    v.kind_ = kind;
    v.integer_ = i;
    return v;
  }

  Kind kind_ = Kind::Undefined;
  bool group_ = false;
  uint32_t size_ = 0;
  union {
    const void* pointer_ = nullptr;
    int64_t integer_;
    double real_;
  };
};

struct Pair {
  Value key, value;
};
inline Value Value::dict(std::span<const Pair> v) { return {Kind::Dict, v.data(), v.size()}; }
inline std::span<const Pair> Value::pairs() const {
  return {static_cast<const Pair*>(pointer_), size_};
}

struct Namespace {
  std::vector<std::pair<std::string_view, Value>> members;
};

/// Variables of a block; what it lacks is its parent's.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;
};

struct Statement;
/// And the state of a cycler.
struct Loop {
  std::span<const Value> items;
  size_t at = 0;
  const Statement* recursive = nullptr;  // what loop(items) runs again
  Scope* outside = nullptr;
  int depth = 1;
  std::span<const Value> seen = {};  // by changed()
  bool has_seen = false;
};

struct Function {
  enum class Kind : uint8_t { Macro, Caller, Global, Method, Joiner } kind = Kind::Global;
  std::string_view name;
  const Statement* macro = nullptr;  // of Macro and Caller
  Scope* scope = nullptr;            // where it was written
  Value self;                        // of Method; of Joiner a cycler
};

/// Memory of one rendering and its budgets. Beyond them: Problem "template.limit".
class Workspace {
 public:
  Workspace(uint64_t steps, size_t bytes) : steps_(steps), bytes_(bytes) {}
  Workspace(const Workspace&) = delete;

  void spend(uint64_t steps);
  /// For what takes a look at so many bytes or items.
  void spend_for(size_t size) { spend(1 + size / 16); }
  void require(size_t bytes) const;  // that so much would fit
  void charge(size_t bytes);
  std::string_view keep(std::string_view text);
  std::span<const Value> keep(std::span<const Value> items) { return copy(items); }
  std::span<const Pair> keep(std::span<const Pair> pairs) { return copy(pairs); }
  Value text(std::string_view t) { return Value::text(keep(t)); }
  Value list(std::span<const Value> v) { return Value::list(keep(v)); }
  Value tuple(std::span<const Value> v) { return Value::tuple(keep(v)); }
  Value dict(std::span<const Pair> v) { return Value::dict(keep(v)); }
  Namespace* new_namespace();
  Scope* new_scope(Scope* parent);
  const Function* new_function(const Function& f);
  Loop* new_loop();

 private:
  template <class T>
  std::span<const T> copy(std::span<const T> items);
  void* take(size_t bytes);

  uint64_t steps_;
  size_t bytes_, block_left_ = 0;
  char* block_at_ = nullptr;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::deque<Namespace> namespaces_;
  std::deque<Scope> scopes_;
  std::deque<Function> functions_;
  std::deque<Loop> loops_;
};

/// A text that grows within the workspace's budget.
class TextBuilder {
 public:
  explicit TextBuilder(Workspace& work) : work_(&work) {}
  void add(std::string_view part) {
    work_->require(text_.size() + part.size());
    text_ += part;
  }
  void add(size_t count, char c) {
    work_->require(text_.size() + count);
    text_.append(count, c);
  }
  const std::string& text() const { return text_; }
  Value done() const { return work_->text(text_); }

 private:
  Workspace* work_;
  std::string text_;
};

std::string_view kind_name(const Value& v);  // Python's: "str", "list", ...
bool truth(const Value& v);
bool equal(const Value& a, const Value& b, Workspace& work, int depth = 0);
/// Python's <; Problem where the two have no order.
bool less(const Value& a, const Value& b, Workspace& work, int depth = 0);
bool contains(const Value& in, const Value& what, Workspace& work);
const Value* find(const Value& dict, const Value& key, Workspace& work);  // nullptr: not there
/// What a loop over it sees: items, keys, characters. Problem for what is no sequence.
std::span<const Value> sequence(const Value& v, Workspace& work);
int64_t length(const Value& v, Workspace& work);

/// Python's str() and repr().
void append_text(TextBuilder& out, const Value& v, Workspace& work);
void append_repr(TextBuilder& out, const Value& v, Workspace& work, int depth = 0);
std::string real_text(double d);
/// Its text; of one that is a text, itself.
std::string_view text_of(const Value& v, Workspace& work);

struct JsonStyle {
  int indent = -1;  // -1: one line
  std::string_view item_separator = ", ", key_separator = ": ";
  bool ascii = false, sort_keys = false;
};
/// Python's json.dumps.
void append_json(TextBuilder& out, const Value& v, const JsonStyle& style, Workspace& work,
                 int depth = 0);
/// Errors: json.format.
Value read_json(std::string_view json, std::string_view what, Workspace& work);

}  // namespace weft::text::jinja
