// What C text differs in between the compilers that take it, as a table: one row is one language.
#pragma once

#include <span>
#include <string_view>

namespace weft {

/// A family of inline functions: the texts of c_prelude.cpp, where their words are explained.
struct CFamily {
  std::string_view name, scalar, vector;
};

/// In the texts of an entry $T is a param's type, $N its number or name and $B the next
/// free place in the list of arguments.
struct CDialect {
  std::string_view name;
  std::string_view header;         // the first lines of every text
  std::string_view inline_prefix;  // of a function that is never called from outside
  std::string_view body_prefix;    // of the function that does the work
  std::string_view entry_prefix;   // of a kernel
  std::string_view memory;         // the address space of buffers
  std::string_view restrict_word;  // no other pointer leads there; empty where there is none
  std::string_view long_word, long_suffix;  // 64-bit integers
  std::string_view bool_word;
  std::string_view infinity;  // of f64, with "f" after it of f32; empty: written as its bits
  bool repeats_typedefs;      // the same one twice is no error; otherwise macros name the types
  bool vectors;               // GCC's vector types are there; otherwise every value is a scalar
  std::span<const CFamily> families = {};  // where they differ from those of C
  // How a work item gets its arguments; without them a kernel is called as target/kernel_abi.h
  // says.
  std::string_view param = {}, argument = {};  // a buffer, and what the body is given for it
  std::string_view variable = {}, count = {};  // 64-bit and 32-bit numbers
  std::string_view item_param = {};            // where the item comes as an argument
  std::string_view item = {};                  // counted from 0
  // Work groups; without them there are none. $A is the number of an axis, $X its letter; in
  // group_size $X, $Y and $Z are the items along each axis and $N is their product.
  std::string_view group_param = {};  // where the ids come as arguments
  std::string_view group_id = {}, item_id = {};
  std::string_view local_memory = {};   // before the array that a group shares,
  std::string_view local_pointer = {};  // and before a pointer to it
  std::string_view barrier = {};        // a statement
  std::string_view group_size = {};     // between entry_prefix and the kernel's name

  bool has_work_items() const { return !item.empty(); }
  bool has_groups() const { return !barrier.empty(); }
};

/// Null where no row has this name.
const CDialect* find_dialect(std::string_view name);

}  // namespace weft
