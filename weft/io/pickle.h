// A pickle as data: what it says, as a tree. Nothing that it names is looked up, called or made; a
// call is a node that says so. The opcodes: Python's Lib/pickletools.py.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct PickleNode {
  enum class Kind : uint8_t {
    None,
    Bool,
    Integer,
    LongInteger,  ///< beyond 64 bits: `text` has its little-endian bytes
    Number,
    Text,
    Bytes,
    List,
    Tuple,
    Set,
    Dict,        ///< key, value, key, value, ...
    Name,        ///< "module name" of a function or class
    Call,        ///< function, arguments (a Tuple)
    Persistent,  ///< what is outside of the pickle: one node that says what
  };
  Kind kind = Kind::None;
  int64_t integer = 0;  ///< of Bool and Integer
  double number = 0;
  std::string text;
  std::vector<uint32_t> items;  ///< other nodes; containers may hold themselves
};

struct Pickle {
  std::vector<PickleNode> nodes;
  uint32_t root = 0;
  size_t bytes = 0;  ///< that it takes at the start of `data`

  const PickleNode& operator[](uint32_t node) const { return nodes[node]; }
};

/// Protocols 2 to 5 as data is pickled in them; an Error of pickle.format for everything else
/// (protocols of text, INST, OBJ, NEWOBJ_EX, extensions, buffers out of band) and where the stack,
/// marks, memo or lengths are wrong. Time and memory are linear in the bytes.
Pickle parse_pickle(std::span<const std::byte> data, std::string_view what);

}  // namespace weft
