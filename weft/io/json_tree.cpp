#include "weft/io/json_tree.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/io/host_array.h"
#include "weft/io/json_reader.h"

namespace weft {

uint32_t JsonTree::add_text(std::string_view text) {
  const size_t at = texts_.size();
  if (at + text.size() > UINT32_MAX)
    fail_runtime("json.format", "{}: more than 4 GiB of text", what_);
  texts_ += text;
  return static_cast<uint32_t>(at);
}

JsonTree::JsonTree(std::string_view text, std::string_view what, std::string_view code)
    : what_(what), code_(code) {
  JsonReader json(text, what);
  json.allow_nul();
  std::vector<uint32_t> open;  // containers
  std::string key;
  do {
    Node node{};
    if (!open.empty()) {
      Node& parent = nodes_[open.back()];
      const bool more = parent.kind == Kind::Array ? json.next_item() : json.next_key(key);
      if (!more) {
        parent.end = static_cast<uint32_t>(nodes_.size());
        open.pop_back();
        continue;
      }
      if (parent.kind == Kind::Object) {
        node.key = add_text(key);
        node.key_size = static_cast<uint32_t>(key.size());
      }
    }
    const char c = json.peek();
    node.offset = static_cast<uint32_t>(std::min<uint64_t>(json.offset(), UINT32_MAX));
    node.end = static_cast<uint32_t>(nodes_.size()) + 1;
    if (c == '{' || c == '[') {
      node.kind = c == '{' ? Kind::Object : Kind::Array;
      c == '{' ? json.begin_object() : json.begin_array();
      open.push_back(static_cast<uint32_t>(nodes_.size()));
    } else if (c == '"') {
      node.kind = Kind::String;
      const std::string value = json.string();
      node.text = add_text(value);
      node.text_size = static_cast<uint32_t>(value.size());
    } else if (c == 't' || c == 'f' || c == 'n') {
      node.kind = c == 't' ? Kind::True : c == 'f' ? Kind::False : Kind::Null;
      json.skip();
    } else {
      node.kind = Kind::Number;
      node.number = static_cast<uint32_t>(numbers_.size());
      numbers_.push_back(json.number());
    }
    nodes_.push_back(node);
    if (nodes_.size() >= UINT32_MAX)
      fail_runtime("json.format", "{}: more than 2^32 values", what_);
  } while (!open.empty());
  json.end();
}

void JsonTree::Value::fail_here(std::string_view problem) const {
  const std::string name = missing_ || node().key_size == 0 ? "" : quoted_name(key()) + " is ";
  fail_runtime(tree_->code_,
               "{}: {}{} at offset {}; the file is damaged or not what it claims to be",
               tree_->what_, name, problem, node().offset);
}

std::string JsonTree::Value::kind_name() const {
  if (missing_) return "nothing";
  constexpr const char* kNames[] = {"null",     "false",    "true",     "a number",
                                    "a string", "an array", "an object"};
  return kNames[static_cast<int>(kind())];
}

void JsonTree::Value::require(Kind wanted, std::string_view what) const {
  if (kind() != wanted) fail_here(kind_name() + " where " + std::string(what) + " has to be");
}

JsonTree::Value JsonTree::Value::operator[](std::string_view wanted) const {
  Value found(tree_, index_, true);
  if (is_null()) return found;
  require(Kind::Object, "an object");
  for (const Value member : *this) {
    if (member.key() != wanted) continue;
    if (!found.missing_) member.fail_here("there twice");
    found = member;
  }
  return found;
}

std::string_view JsonTree::Value::text() const {
  require(Kind::String, "a string");
  return std::string_view(tree_->texts_).substr(node().text, node().text_size);
}

double JsonTree::Value::number() const {
  require(Kind::Number, "a number");
  return tree_->numbers_[node().number];
}

int64_t JsonTree::Value::integer(int64_t least, int64_t most) const {
  const double x = number();
  if (x != std::floor(x) || x < static_cast<double>(least) || x > static_cast<double>(most))
    fail_here(strformat("{} where an integer from {} to {} has to be", x, least, most));
  return static_cast<int64_t>(x);
}

bool JsonTree::Value::boolean() const {
  if (kind() != Kind::True) require(Kind::False, "true or false");
  return kind() == Kind::True;
}

std::string_view JsonTree::Value::key() const {
  return missing_ ? "" : std::string_view(tree_->texts_).substr(node().key, node().key_size);
}

size_t JsonTree::Value::size() const {
  size_t count = 0;
  for (auto at = begin(); at != end(); ++at) ++count;
  return count;
}

JsonTree::Value::Iterator JsonTree::Value::begin() const {
  const bool holds = kind() == Kind::Array || kind() == Kind::Object;
  if (!is_null() && !holds) fail_here(kind_name() + " where an array or an object has to be");
  return {tree_, holds ? index_ + 1 : node().end};
}
JsonTree::Value::Iterator JsonTree::Value::end() const { return {tree_, node().end}; }

}  // namespace weft
