// CpuFeatures: which instruction sets the host CPU has and the system saves, by CPUID and XGETBV.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

class Context;

enum class CpuFeature : uint8_t {
#define X(id, flag, leaf, subleaf, reg, bit, state) id,
#include "weft/target/cpu_features.def"
#undef X
  Count
};

class CpuFeatures {
 public:
  static CpuFeatures detect();  // asks the CPU
  // What kernels of this context may use: what the CPU has, up to the level of WEFT_ISA. Asked once
  // per Context.
  static const CpuFeatures& of(Context& context);

  // Those of a level ("avx2") and of the levels below; all where it is empty. An Error where there
  // is no such level or these features do not make it up.
  CpuFeatures up_to(std::string_view level) const;

  // The newest level that these make up: "avx2".
  std::string_view newest_level() const;

  bool has(CpuFeature f) const { return (bits_ >> static_cast<int>(f) & 1) != 0; }
  void set(CpuFeature f, bool on) {
    const uint64_t bit = uint64_t{1} << static_cast<int>(f);
    bits_ = on ? bits_ | bit : bits_ & ~bit;
  }
  uint64_t bits() const { return bits_; }
  bool contains(CpuFeatures other) const { return (other.bits_ & ~bits_) == 0; }

  // For a compiler: "-msse4.1 -mavx2 ...". Explicit features, never a CPU's name, so that what is
  // compiled here is what was detected here, under hypervisors too.
  std::string compiler_flags() const;
  std::string text() const;  // "sse4.1 avx2 ...", for `weft devices`

 private:
  uint64_t bits_ = 0;
};

}  // namespace weft
