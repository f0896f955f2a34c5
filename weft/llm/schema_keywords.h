// SchemaKeywords: what a JSON schema asks for together with the schemas that hold beside it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/io/json_tree.h"

namespace weft::llm {

[[noreturn]] void fail_schema(JsonTree::Value at, std::string_view problem);
/// The value as JSON, numbers in one spelling.
std::string json_text_of(JsonTree::Value v);
/// Whether it is an object with such a member, also one that is null.
bool has_member(JsonTree::Value object, std::string_view key);
/// What a JSON pointer in a URI's fragment ("#/$defs/a") names in `root` (RFC 6901).
JsonTree::Value resolved(JsonTree::Value ref, JsonTree::Value root);
/// What makes a schema one of its own, where references begin: its $id, but "#name", which only
/// names a place. Empty: none.
std::string_view resource_id(JsonTree::Value schema);
/// Whether `keyword` is all that a schema says of a value.
bool says_only(JsonTree::Value schema, std::string_view keyword);

/// A schema, those that its $ref and allOf name, and any that are added: a value has to follow all
/// of them. Errors: "llm.schema", for keywords that answers cannot be held to.
class SchemaKeywords {
 public:
  /// `root` is what references begin at.
  SchemaKeywords(JsonTree::Value schema, JsonTree::Value root);
  /// One more that holds.
  void add(JsonTree::Value schema, JsonTree::Value root);
  /// What is there of `keyword` has been heeded.
  void hide(std::string_view keyword);

  /// Null where none says it. Error: where two say it and not the same.
  JsonTree::Value operator[](std::string_view keyword) const;
  bool has(std::string_view keyword) const;
  bool says_nothing() const;  ///< any value follows them
  /// What each says that says it.
  std::vector<JsonTree::Value> all(std::string_view keyword) const;
  /// `keyword` means what `beside` leaves of its own schema. Error: where another one has `beside`.
  void require_together(std::string_view keyword, std::string_view beside) const;
  /// Error: where anything else is said of a value.
  void require_only(std::string_view keyword, std::string_view other) const;
  JsonTree::Value first() const { return parts_[0].schema; }
  bool is_one() const { return parts_.size() == 1; }
  /// The same for the same schemas of which the same has been heeded.
  std::string identity() const;

 private:
  struct Part {
    JsonTree::Value schema;
    std::vector<std::string_view> hidden = {};
    bool has(std::string_view keyword) const;
  };
  std::vector<Part> parts_;
};

}  // namespace weft::llm
