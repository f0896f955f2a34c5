#include "weft/isa/machine_binary.h"

#include <array>
#include <utility>

#include "weft/base/byte_writer.h"
#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/base/varints.h"

namespace weft {
namespace {

enum Flags : uint8_t {
  kMemory = 1,
  kBroadcast = 2,
  kZeroing = 4,
  kMasked = 8,
  kRegisters = 16,
  kImmediate = 32,
  kLabelled = 64
};
constexpr uint8_t kAllFlags = 127;

uint64_t number_of(Reg r) { return r == kNoReg ? 0 : uint64_t{r} + 1; }

uint8_t flags_of(const Instruction& i) {
  bool registers = false;
  for (const Reg r : i.regs) registers |= r != kNoReg;
  return static_cast<uint8_t>((i.has_memory ? kMemory : 0) | (i.broadcast ? kBroadcast : 0) |
                              (i.zeroing ? kZeroing : 0) | (i.mask != kNoReg ? kMasked : 0) |
                              (registers ? kRegisters : 0) | (i.immediate != 0 ? kImmediate : 0) |
                              (i.label >= 0 ? kLabelled : 0));
}

/// Twelve numbers at most, and three bytes.
constexpr size_t kMostBytes = 12 * kLongestVarint + 3;

char* write(char* at, const Instruction& i) {
  const uint8_t flags = flags_of(i);
  at = put_varint(at, i.form);
  at = put_varint(at, i.width);
  *at++ = static_cast<char>(flags);
  if (flags & kMasked) at = put_varint(at, i.mask);
  if (flags & kRegisters)
    for (const Reg r : i.regs) at = put_varint(at, number_of(r));
  if (flags & kMemory) {
    at = put_varint(at, number_of(i.address.base));
    at = put_varint(at, number_of(i.address.index));
    at = put_varint(at, zigzag(i.address.displacement));
    at = put_varint(at, zigzag(i.address.label));
    *at++ = static_cast<char>(i.address.scale);
  }
  if (flags & kImmediate) at = put_varint(at, zigzag(i.immediate));
  if (flags & kLabelled) at = put_varint(at, static_cast<uint64_t>(i.label));
  return at;
}

class Reader {
 public:
  Reader(std::span<const std::byte> data, std::string_view what) : in_(data, what) {}

  StoredMachine read(size_t (*forms)(std::string_view)) {
    StoredMachine out;
    out.set = in_.text(in_.varint());
    forms_ = forms(out.set);
    if (forms_ == 0) damaged("instructions of a machine that is not known");
    MachineProgram& p = out.program;
    p.labels = small();
    p.frame_bytes = small();
    p.in_memory = small();
    p.rematerialised = small();
    p.code.resize(in_.count(in_.varint(), 3));
    for (Instruction& i : p.code) read(i);
    if (open_ != 0) damaged("a loop has no end");
    if (!in_.done()) damaged("something follows the last instruction");
    return out;
  }

 private:
  [[noreturn]] void damaged(const char* problem) const {
    fail("viz.damaged", "{}: offset {}: {}", in_.what(), in_.offset(), problem);
  }

  int32_t small() {
    const uint64_t v = in_.varint();
    if (v > INT32_MAX) damaged("a number is out of range");
    return static_cast<int32_t>(v);
  }
  int32_t small_signed() {
    const int64_t v = unzigzag(in_.varint());
    if (v < INT32_MIN || v > INT32_MAX) damaged("a number is out of range");
    return static_cast<int32_t>(v);
  }
  Reg reg() {
    const int32_t v = small();
    return v == 0 ? kNoReg : static_cast<Reg>(v - 1);
  }

  void read_form(Instruction& i) {
    const int32_t form = small();
    const bool pseudo = form >= kLabel && form <= kLoopEnd;
    if (!pseudo && static_cast<size_t>(form) >= forms_) damaged("there is no such instruction");
    i.form = static_cast<uint16_t>(form);
    if (form == kLoopBegin) ++open_;
    if (form == kLoopEnd && --open_ < 0) damaged("a loop ends that has not begun");
  }

  void read(Instruction& i) {
    read_form(i);
    const int32_t width = small();
    if (width > 512) damaged("an operand is too wide");
    i.width = static_cast<uint16_t>(width);
    const uint8_t flags = in_.u8();
    if (flags > kAllFlags) damaged("there is no such flag");
    i.has_memory = flags & kMemory;
    i.broadcast = flags & kBroadcast;
    i.zeroing = flags & kZeroing;
    if (flags & kMasked) i.mask = static_cast<Reg>(small());
    if (flags & kRegisters)
      for (Reg& r : i.regs) r = reg();
    if (flags & kMemory) {
      i.address.base = reg();
      i.address.index = reg();
      i.address.displacement = small_signed();
      i.address.label = small_signed();
      i.address.scale = in_.u8();
    }
    if (flags & kImmediate) i.immediate = unzigzag(in_.varint());
    if (flags & kLabelled) i.label = small();
  }

  ByteReader in_;
  size_t forms_ = 0;
  int64_t open_ = 0;
};

}  // namespace

std::string machine_bytes(const MachineProgram& program, std::string_view set) {
  ByteWriter out;
  out.text(set);
  for (const int32_t v :
       {program.labels, program.frame_bytes, program.in_memory, program.rematerialised})
    out.varint(static_cast<uint64_t>(v));
  out.varint(program.code.size());
  std::string bytes(reinterpret_cast<const char*>(out.data().data()), out.size());
  bytes.reserve(bytes.size() + program.code.size() * 16);
  std::array<char, 16 * kMostBytes> room;  // for more than one: to append each would cost as much
  char* at = room.data();
  const auto flush = [&] { bytes.append(room.data(), std::exchange(at, room.data())); };
  for (const Instruction& i : program.code) {
    if (room.data() + room.size() - at < static_cast<ptrdiff_t>(kMostBytes)) flush();
    at = write(at, i);
  }
  flush();
  return bytes;
}

StoredMachine read_machine(std::span<const std::byte> data, std::string_view what,
                           size_t (*forms)(std::string_view set)) {
  return Reader(data, what).read(forms);
}

}  // namespace weft
