// The interpreter's instruction and its tables: a linear program decoded once into an array of
// functions with the offsets of their operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/graph/program.h"
#include "weft/target/kernel_abi.h"

namespace weft::interp {

struct Frame;
struct Instr;
/// Does one instruction and returns the next; null at the end.
using Step = const Instr* (*)(const Instr*, Frame&);

struct Instr {
  Step step;
  uint32_t out = 0, a = 0, b = 0, c = 0;  // offsets into Frame::slots
  uint32_t n = 1;                         // lanes, or bytes of a copy
  int32_t jump = 0;                       // instructions to go, for control flow
  uint32_t slot = 0;                      // of a param or variable
};

/// Values of one worker. A bool is a byte 0 or 1, f16 and bf16 are their 16 bits; lanes lie
/// together.
struct Frame {
  std::byte* slots;
  const KernelArgs* args;
  uint32_t begin, end;
};

template <class T>
T* at(Frame& f, uint32_t offset) {
  return reinterpret_cast<T*>(f.slots + offset);
}

/// An elementwise op on one dtype (of its first operand; of the values for where); null where the
/// interpreter has none. Scalars have a version of their own.
Step alu_step(Op op, DType dtype, bool scalar);
Step cast_step(DType from, DType to);
Step load_step(DType dtype, DType index, bool masked);
Step store_step(DType dtype, DType index, bool masked);

/// A decoded program.
class Program {
 public:
  explicit Program(const LinearProgram& source);
  void run(const KernelArgs& args, uint32_t begin, uint32_t end) const;
  size_t size() const { return code_.size(); }

 private:
  friend class Decoder;
  std::vector<Instr> code_;
  std::vector<std::byte> constants_;  // the first bytes of every frame
  size_t frame_bytes_ = 0;
};

}  // namespace weft::interp
