// JinjaTemplate: chat templates of models, in the part of Jinja's language that they use.
// Sandboxed: a template sees the data it is given and nothing else, and its steps and memory are
// bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::text {

struct RenderOptions {
  uint64_t most_steps = 20'000'000;        ///< expressions, statements, items looked at
  size_t most_memory = size_t{256} << 20;  ///< bytes of values in between
  size_t most_output = size_t{64} << 20;   ///< bytes
  std::optional<int64_t> now;  ///< for strftime_now: seconds since 1970; none: the clock's
  /// Gets where the output of {% generation %} blocks begins and ends, in bytes.
  std::vector<std::pair<size_t, size_t>>* generated = nullptr;
};

/// The language of jinja2 3.1 in transformers' set-up: ImmutableSandboxedEnvironment with
/// trim_blocks, lstrip_blocks, break and continue, generation blocks, tojson without escapes,
/// raise_exception, strftime_now. What it has: if, for (filtered, else, loop.*), set, macro, call,
/// filter, with, raw; all operators, slices, comparisons; the filters, tests and methods that
/// `filters()` and their like list; cycler, joiner. What it lacks: inheritance and imports,
/// autoescape, integers of more than 64 bits.
///   JinjaTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")
///       .render(R"({"messages": [{"role": "user", "content": "Hi"}]})");  // <user>Hi
class JinjaTemplate {
 public:
  /// `what` names it in errors. Error: template.syntax, with line and column.
  explicit JinjaTemplate(std::string_view source, std::string_view what = "chat template");
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;

  /// `variables`: a JSON object. Several threads may render at once. Errors, with line and column:
  /// template.value (a type that does not fit, something undefined), template.raised (the template
  /// says so itself), template.limit; json.format.
  std::string render(std::string_view variables, const RenderOptions& options = {}) const;

  static std::vector<std::string_view> filters();
  static std::vector<std::string_view> tests();

 private:
  struct Tree;
  std::string what_;
  std::unique_ptr<const Tree> tree_;
};

}  // namespace weft::text
