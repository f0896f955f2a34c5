// The integers of an op by name, read from ops.def's schema column: what printing, parsing and
// checking share.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/graph/op.h"

namespace weft {

enum class FieldKind : uint8_t { Number, List, Bits, Fold, Binding };

struct Field {
  std::string_view name;
  FieldKind kind = FieldKind::Number;
};

struct Schema {
  bool text = false;  ///< Node::text() is used
  uint8_t count = 0;
  std::array<Field, 7> fields{};

  constexpr std::span<const Field> list() const { return {fields.data(), count}; }
  constexpr bool open_ended() const {
    return count > 0 && fields[count - 1u].kind == FieldKind::List;
  }
  /// Integers every node of the op has.
  constexpr size_t fixed() const { return open_ended() ? count - 1u : count; }
};

namespace detail {
constexpr Field field_named(std::string_view word) {
  if (word.ends_with("...")) return {word.substr(0, word.size() - 3), FieldKind::List};
  if (word == "bits") return {word, FieldKind::Bits};
  if (word == "kind" || word == "combine") return {word, FieldKind::Fold};
  if (word == "binding") return {word, FieldKind::Binding};
  return {word, FieldKind::Number};
}

constexpr Schema read_schema(std::string_view words) {
  Schema schema;
  while (!words.empty()) {
    const size_t space = words.find(' ');
    const std::string_view word = words.substr(0, space);
    words = space == std::string_view::npos ? std::string_view() : words.substr(space + 1);
    if (word.starts_with('"'))
      schema.text = true;
    else
      schema.fields[schema.count++] = field_named(word);
  }
  return schema;
}

constexpr auto read_schemas() {
  std::array<Schema, sizeof(kOps) / sizeof(kOps[0])> rows{};
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = read_schema(kOps[i].schema);
  return rows;
}
inline constexpr auto kSchemas = read_schemas();
}  // namespace detail

constexpr const Schema& schema(Op op) {
  return detail::kSchemas[detail::kOpIndex.row[static_cast<uint8_t>(op)]];
}

constexpr int64_t kFoldCount = 7;
constexpr int64_t kBindingCount = static_cast<int64_t>(Binding::Tile) + 1;

}  // namespace weft
