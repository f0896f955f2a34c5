// What the tests of the C interface share. They link libweft.so and nothing else of weft's.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/c/weft.hpp"

namespace weft::c {

/// A context that no environment can change, and that is gone with its last tensor.
class CTest : public ::testing::Test {
 protected:
  Context context{{"WEFT_DEV=CPU", "WEFT_THREADS=2"}};
};

inline weft_error last_error() {
  weft_error e = WEFT_STRUCT(weft_error);
  EXPECT_EQ(weft_last_error(&e), WEFT_OK);
  return e;
}

/// The call fails with this status, and says this.
#define EXPECT_REFUSED(call, expected, words)                              \
  do {                                                                     \
    EXPECT_EQ(call, expected);                                             \
    const std::string said = ::weft::c::last_error().text;                 \
    EXPECT_NE(said.find(words), std::string::npos) << "it says: " << said; \
  } while (false)

inline std::vector<float> floats(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace weft::c
