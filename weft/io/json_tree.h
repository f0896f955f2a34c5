// JsonTree: a whole JSON text in one array, for what is not read in one order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Read by a JsonReader, whose limits hold; NUL is allowed in strings. Children follow their
/// parent.
///   const JsonTree tree(text, "config.json");
///   for (JsonTree::Value layer : tree.root()["layers"]) use(layer["name"].text());
class JsonTree {
 public:
  enum class Kind : uint8_t { Null, False, True, Number, String, Array, Object };
  class Value;

  /// `what` names the text in errors. Errors of values have the code `code`.
  JsonTree(std::string_view text, std::string_view what, std::string_view code = "json.format");
  JsonTree(const JsonTree&) = delete;  // values point into it
  Value root() const;

 private:
  struct Node {
    Kind kind;
    uint32_t end;            // the node behind this one and all that is in it
    uint32_t key, key_size;  // in texts_
    uint32_t offset;         // in the file
    uint32_t text, text_size;
    uint32_t number;  // in numbers_
  };
  uint32_t add_text(std::string_view text);

  std::string what_, code_;
  std::vector<Node> nodes_;
  std::vector<double> numbers_;
  std::string texts_;
};

/// A value of a tree, or what is missing: null. Wrong kinds are Errors that say where.
class JsonTree::Value {
 public:
  Kind kind() const { return missing_ ? Kind::Null : node().kind; }
  bool is_null() const { return kind() == Kind::Null; }
  bool is_text() const { return kind() == Kind::String; }
  bool is_array() const { return kind() == Kind::Array; }
  bool is_object() const { return kind() == Kind::Object; }

  /// Of an object; null where it has no such key, and of null. A key that is there twice is an
  /// Error.
  Value operator[](std::string_view key) const;
  Value missing() const { return {tree_, index_, true}; }  ///< as of a key that is not there
  std::string_view text() const;
  double number() const;
  int64_t integer(int64_t least, int64_t most) const;
  bool boolean() const;
  // Where it is null, `otherwise`.
  std::string_view text_or(std::string_view otherwise) const {
    return is_null() ? otherwise : text();
  }
  int64_t integer_or(int64_t otherwise, int64_t least, int64_t most) const {
    return is_null() ? otherwise : integer(least, most);
  }
  bool boolean_or(bool otherwise) const { return is_null() ? otherwise : boolean(); }

  std::string_view key() const;              // of what is in an object
  uint32_t place() const { return index_; }  ///< no other value of the tree has it
  size_t size() const;                       // elements or members
  class Iterator;
  Iterator begin() const;  // elements or members; null has none
  Iterator end() const;
  std::string kind_name() const;
  [[noreturn]] void fail_here(std::string_view problem) const;

 private:
  friend class JsonTree;
  Value(const JsonTree* tree, uint32_t index, bool missing = false)
      : tree_(tree), index_(index), missing_(missing) {}
  const Node& node() const { return tree_->nodes_[index_]; }
  void require(Kind kind, std::string_view what) const;

  const JsonTree* tree_;
  uint32_t index_;  // where it is missing, of what should have it
  bool missing_;
};

class JsonTree::Value::Iterator {
 public:
  Iterator(const JsonTree* tree, uint32_t index) : tree_(tree), index_(index) {}
  Value operator*() const { return {tree_, index_}; }
  Iterator& operator++() {
    index_ = tree_->nodes_[index_].end;
    return *this;
  }
  bool operator!=(const Iterator& other) const { return index_ != other.index_; }

 private:
  const JsonTree* tree_;
  uint32_t index_;
};

inline JsonTree::Value JsonTree::root() const { return {this, 0}; }

}  // namespace weft
