// quantised_model(): a model's matrices in packed formats, mixed as llama.cpp mixes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weft/base/function_ref.h"
#include "weft/io/gguf_model.h"

namespace weft::llm {

/// "F32, F16, ..., Q4_K_M, ...": what quantised_model() knows.
std::string quantisation_mixes();

struct QuantiseOptions {
  std::string mix = "Q4_K_M";  ///< Q3_K, Q4_K, Q5_K: those with _M; empty: all stays as it is
  bool requantise = false;     ///< also what is packed already, which loses more
};

using QuantiseProgress = FunctionRef<void(size_t done, size_t all, std::string_view name)>;

/// The model with its matrices in the formats of a mix; vectors, routers of experts and tables of
/// positions stay as they are. The output and some matrices that matter more than others get more
/// bits (llama.cpp, src/llama-quant.cpp); rows that blocks do not divide get a format of smaller
/// blocks. `progress` hears of every tensor that is done. Errors: "llm.quantise" (an unknown mix, a
/// packed matrix without `requantise`), those of quantise().
GgufContent quantised_model(const GgufModel& model, const QuantiseOptions& options,
                            QuantiseProgress progress);

struct QuantisedSizes {
  uint64_t before = 0, after = 0;  ///< bytes of all tensors
};
/// The same into a file, atomically, with one tensor in memory at a time.
QuantisedSizes save_quantised_model(const std::string& path, GgufModel model,
                                    const QuantiseOptions& options, QuantiseProgress progress);

}  // namespace weft::llm
