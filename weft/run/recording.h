// The format of recordings (WEFT_VIZ): a file of blocks, each of records of one process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::recording {

// A file is blocks one after the other, of any number of processes. A block: kMagic, u32 version,
// u32 bytes of records, u64 checksum, u64 stream (a number that the process drew), u32 its number
// in the stream, and how many strings (u64) the stream's earlier blocks hold, so that a block may
// be lost and the rest still be read; then its records, whole. A
// record: u8 kind, varint bytes, content. What is not known is left out.
constexpr std::array<uint8_t, 8> kMagic = {'w', 'e', 'f', 't', 'v', 'i', 'z', 0x1a};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 8 + 4 + 4 + 8 + 8 + 4 + 8;
constexpr size_t kChecksumAt = 8 + 4 + 4;

/// Contents, in varints where nothing else is said; `text` is its size and its bytes. Strings are
/// named by their number from 1 (0: none), runs and kernels from 0 in a stream; states from 1 and
/// nodes from 0 in an arena: that of a kernel is its number + 1, that of the rest 0. Times are
/// CLOCK_MONOTONIC's nanoseconds.
enum class Kind : uint8_t {
  /// pid, parent, u64 now, u64 now of the wall clock (unix ns), text version, text build, text
  /// directory, text device, text machine, words of the command without secrets (count, texts),
  /// options that are not as they are by themselves (count, texts NAME=value)
  Process = 1,
  String = 2,  ///< the bytes
  Nodes = 3,   ///< arena, number of the first, count, each as graph/binary.h writes one
  State = 4,   ///< arena, number, u8 form, content by form: state_writer.cpp
  Rule = 5,    ///< string name, text rule, text source
  Lines = 6,   ///< arena, count, each: node, string
  /// string name, string subject, run + 1 or 0, kernel + 1 or 0, depth, u64 start, ns, u8
  /// whether it ended, state before, state after, count of firings, each: string rule, node before,
  /// node after. Nodes and states are of the kernel's arena, or of the first
  Pass = 7,
  /// kernel, run + 1 or 0, string name, string entry (what spans call it), string device, string
  /// line, string target, f64 flops, f64
  /// bytes, spilled, bytes of code, ns, text machine code, count of transformations, each: string;
  /// count of all its lines,
  /// each: string (not there in earlier recordings)
  Kernel = 8,
  /// run + 1 or 0, count, each: u8 staged, string value, string reason, string line
  Decisions = 9,
  /// schedule, run + 1 or 0, count of buffers, each: string device, string dtype, zigzag bytes (-1:
  /// not known), zigzag input, zigzag output; count of steps, each: u8 copy, kernel + 1 or 0
  /// (compiled
  /// elsewhere), string name, string entry, string line, count of buffers, each: buffer * 2 +
  /// written
  Schedule = 10,
  /// schedule, count of arenas, each: string device, bytes, least, count of buffers, each: buffer,
  /// offset, bytes, first, last
  Memory = 11,
  Begin = 12,  ///< run, u8 kind (0 realize, 1 capture, 2 replay), string line, u64 start
  /// run, u64 end, ns of compiling, schedule + 1 or 0, u8 failed, count of counters, each: string
  /// name, zigzag increase
  End = 13,
  Track = 14,  ///< track, string name, u8 kind (0 thread, 1 queue)
  /// count, each: string name, string detail, track, zigzag start (from the one before, from 0),
  /// ns,
  /// zigzag amount
  Spans = 15,
  /// string kernel, string device, string line, text plan found, text plan of the model, f64
  /// seconds of each, f64 cycles of each, rounds, plans, samples, refused, f64 seconds it took
  Search = 16,
  Finish = 17,  ///< u64 now
  Cut = 18,     ///< text why: the process records no more
  Names = 19,   ///< schedule, count, each: buffer, string: who the tensor is that it is memory of
};

}  // namespace weft::recording
