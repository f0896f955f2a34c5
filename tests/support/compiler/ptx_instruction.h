// What PTX instructions compute, on registers of 64 bits of which types take the low ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing::ptx {

enum class Type : uint8_t { Pred, S8, U8, S16, U16, S32, U32, S64, U64, F16, BF16, F32, F64 };

/// "add.rn.f32" taken apart: its words after the first that are no types, and the types.
struct Instruction {
  std::string op;
  std::vector<std::string> words;
  std::vector<Type> types;

  static Instruction parse(std::string_view text);
  bool has(std::string_view word) const;
};

int bytes_of(Type type);
/// As a register holds it: signed integers extended to a word.
uint64_t extended(Type type, uint64_t bits);
/// Of instructions that compute a register from registers.
uint64_t compute(const Instruction& what, const uint64_t* operands);

}  // namespace weft::testing::ptx
