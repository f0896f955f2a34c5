// CPrelude: the typedefs and inline functions a C text needs, collected as they are first used.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "weft/dtype/dtype.h"
#include "weft/render/dialect.h"

namespace weft {

/// A type of the C text. f16 and bf16 are held as their 16 bits; a vector of bool is a mask, 0 or
/// -1 in signed integers as wide as whatever was compared.
struct CType {
  enum class Kind : uint8_t { Bool, Signed, Unsigned, Float };
  Kind kind = Kind::Signed;
  int bits = 32;
  int lanes = 1;

  std::string scalar() const;  // "f32"
  std::string name() const;    // "f32x16"
  CType with_lanes(int n) const { return {kind, bits, n}; }
  friend bool operator==(const CType&, const CType&) = default;
};

/// How values of `dtype` are held. Vectors of bool: a mask of 8 bits each.
CType c_type(DType dtype, int lanes);
/// The mask that goes with vectors of elements this wide; bool when lanes is 1.
CType c_mask(int bits, int lanes);

class CPrelude {
 public:
  explicit CPrelude(const CDialect& dialect) : dialect_(dialect) {}

  const CDialect& dialect() const { return dialect_; }
  /// The type's name, declared.
  std::string type(CType t);
  /// Its form for unaligned access through memory: "f32x16_u".
  std::string memory_type(CType t);
  /// The name of `family`_T or `family`_T_S for these types (S has T's lanes), declared.
  std::string function(std::string_view family, CType t, CType s = {});
  /// `text` with @family_T(...) and #T replaced: see c_prelude.cpp.
  std::string expand(std::string_view text, int lanes);

  const std::string& text() const { return text_; }

 private:
  std::string call(std::string_view word, int lanes);
  void name_scalar(const std::string& name, const std::string& words);
  void typedef_once(const std::string& name, const std::string& declaration);

  const CDialect& dialect_;
  std::set<std::string> known_;
  std::string text_;
};

}  // namespace weft
