#include <gtest/gtest.h>

extern "C" int weft_header_test(void);  // header_test.c

TEST(CLibrary, TheHeaderIsC11) { EXPECT_EQ(weft_header_test(), 45); }
