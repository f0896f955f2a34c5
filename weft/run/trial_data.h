// What the kernels of a search are run on, and how what they make of it is compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/dtype/dtype.h"
#include "weft/graph/program.h"

namespace weft {

/// Whole: small integers, of which floats hold sums and products exactly. Positive: uniform in
/// [0.5, 1.5), so that the magnitudes of a sum's terms are what it sums to. Of integers both are
/// whole.
enum class TrialData : uint8_t { Whole, Positive };
/// The same in every run.
void fill_trial_data(std::span<std::byte> memory, DType dtype, TrialData data, uint64_t seed);

/// What two kernels for the same values may differ by.
struct TrialTolerance {
  bool exact = true;          ///< on whole numbers: only sums, products and what rounds nothing
  double terms = 1;           ///< that its sums have
  bool reassociates = false;  ///< it has sums of floats
  static TrialTolerance of(const Kernel& kernel);
};
/// Element by element: bit for bit where nothing is summed in another order or sums are exact, else
/// within the bound of docs/dtypes.md. Every NaN equals every NaN.
bool same_values(std::span<const std::byte> expected, std::span<const std::byte> got, DType dtype,
                 TrialData data, const TrialTolerance& tolerance);

}  // namespace weft
