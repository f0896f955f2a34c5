// The external C compiler: found on PATH or by WEFT_CC, run without a shell, with a deadline.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/target/cpu_features.h"

namespace weft {

class Context;

struct CCompiler {
  std::string path;
  std::string identity;  ///< path, size and time of the file: changes when it is replaced
  bool is_clang = false;
};

/// WEFT_CC, else the first of clang-19, clang, gcc, cc on PATH. A WEFT_CC that is not there is a
/// DeviceError.
std::optional<CCompiler> find_c_compiler(Context& context);

/// What to tell whoever has none.
std::string no_compiler_advice();

/// The flags kernels are compiled with on a CPU with these features.
std::vector<std::string> c_compiler_flags(const CpuFeatures& cpu);

/// One object file per text, compiled by as many processes at once as there are texts. Whatever
/// goes wrong (no such program, a crash, diagnostics, no answer within `seconds`) is a DeviceError
/// with the compiler's first lines.
std::vector<std::string> compile_c(Context& context, const CCompiler& compiler,
                                   std::span<const std::string> flags,
                                   std::span<const std::string> texts, int seconds = 120);

}  // namespace weft
