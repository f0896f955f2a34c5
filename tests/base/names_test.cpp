#include "weft/base/names.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Names, DistanceCountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("debgu", "debug"), 1);
  EXPECT_EQ(edit_distance("CPU", "cpu"), 0);
}

TEST(Names, SuggestsOnlyWhatIsNear) {
  const std::string_view names[] = {"CPU", "INTERP", "NULL"};
  EXPECT_EQ(did_you_mean("INTREP", names), "; did you mean INTERP?");
  EXPECT_EQ(did_you_mean("cpu0", names), "; did you mean CPU?");
  EXPECT_EQ(did_you_mean("quantum", names), "");
}

}  // namespace
}  // namespace weft
