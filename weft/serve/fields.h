// Fields: the parameters of a request's JSON object, each with its type and range.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weft/io/json_tree.h"
#include "weft/serve/refusal.h"

namespace weft::serve {

/// A parameter that is null is one that is not given. What is wrong is a Refusal with what was sent
/// and what may be.
class Fields {
 public:
  /// `where` is what comes before the names in messages: "messages[2].".
  explicit Fields(JsonTree::Value object, std::string where = "");

  /// Others than these are refused: a name that is misspelt would be one that does nothing.
  void only(std::span<const std::string_view> known) const;

  bool has(std::string_view name) const { return !object_[name].is_null(); }
  JsonTree::Value operator[](std::string_view name) const { return object_[name]; }
  double number(std::string_view name, double otherwise, double least, double most) const;
  int64_t integer(std::string_view name, int64_t otherwise, int64_t least, int64_t most) const;
  bool flag(std::string_view name, bool otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise = "") const;
  JsonTree::Value array(std::string_view name, size_t most) const;  ///< or null
  JsonTree::Value object(std::string_view name) const;              ///< or null
  std::string path(std::string_view name) const { return where_ + std::string(name); }
  /// "NAME is VALUE; WANTED".
  [[noreturn]] void refuse(std::string_view name, std::string_view wanted) const;

 private:
  JsonTree::Value of(std::string_view name, JsonTree::Kind kind, std::string_view wanted) const;

  JsonTree::Value object_;
  std::string where_;
};

[[noreturn]] void refuse_parameter(std::string param, std::string message,
                                   std::string code = "invalid_parameter");
/// A value as messages show it: short.
std::string shown(JsonTree::Value value);
/// A value as JSON text.
std::string json_text(JsonTree::Value value);

}  // namespace weft::serve
