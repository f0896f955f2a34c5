#include "weft/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft {
namespace {

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Error, CarriesTagCodeKindAndValues) {
  try {
    fail_type("cast.no_type", "cannot cast {} to {}", "f32", "index");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[cast] cannot cast f32 to index");
    EXPECT_EQ(error.code(), "cast.no_type");
    EXPECT_EQ(error.tag(), "cast");
    EXPECT_EQ(error.kind(), ErrorKind::Type);
    EXPECT_FALSE(error.where());
  }
}

TEST(Error, OutermostCallSiteIsTheUsers) {
  CallSiteScope user({"/home/u/project/train.cpp", 12});
  {
    CallSiteScope inner({"/weft/tensor/ops.cpp", 99});
    EXPECT_EQ(message_of([] { fail("sum", "bad axis {}", 3); }),
              "[sum] bad axis 3 (project/train.cpp:12)");
  }
  EXPECT_EQ(current_call_site().line, 12);
}

TEST(Error, CallSiteEndsWithItsScope) {
  { CallSiteScope scope(CallSite::here()); }
  EXPECT_FALSE(current_call_site());
}

TEST(Error, HereIsTheCallersLine) {
  auto at = [](CallSite site = CallSite::here()) { return site.line; };
  EXPECT_EQ(at(), __LINE__);
}

TEST(Error, LinesOfTheStandardLibraryAreNotTheUsers) {
  struct Layer {
    explicit Layer(CallSite at = CallSite::here()) {
      const CallSiteScope scope(at);
      const CallSiteScope inner({"/weft/nn/initialise.cpp", 16});
      made = current_call_site();
    }
    CallSite made;
  };
  std::vector<Layer> layers;
  layers.emplace_back();
  std::optional<Layer> one;
  one.emplace();
  EXPECT_FALSE(layers[0].made) << short_text(layers[0].made);
  EXPECT_FALSE(one->made) << short_text(one->made);
  EXPECT_FALSE(std::make_unique<Layer>()->made);
  EXPECT_FALSE(std::make_shared<Layer>()->made);
  EXPECT_EQ(Layer().made.line, __LINE__);
  const CallSiteScope network({"/home/u/project/net.cpp", 3});  // what is known stays
  EXPECT_EQ(std::make_unique<Layer>()->made.line, 3);
}

TEST(Error, CheckThrowsInternalErrorWithCondition) {
  const int sources = 1;
  const std::string text = message_of([&] { WEFT_CHECK(sources == 2, "add has {}", sources); });
  EXPECT_NE(text.find("`sources == 2` does not hold: add has 1"), std::string::npos) << text;
  EXPECT_THROW(WEFT_CHECK(sources == 2), InternalError);
  EXPECT_NO_THROW(WEFT_CHECK(sources == 1));
}

TEST(Error, InternalErrorIsAnInternalErrorType) {
  EXPECT_THROW(internal_error("lower", "lost {}", 1), InternalError);
}

TEST(Error, DeviceErrorNamesCallStatusLibrary) {
  try {
    fail_device("cuLaunchKernel", 700, "libcuda.so.1", "illegal address in {}", "r_16");
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.call(), "cuLaunchKernel");
    EXPECT_EQ(error.status(), 700);
    EXPECT_EQ(error.library(), "libcuda.so.1");
    EXPECT_NE(std::string(error.what()).find("illegal address in r_16"), std::string::npos);
  }
}

TEST(Error, ErrnoSaysWhyAndFullDiskSaysWhatToDo) {
  const std::string text = message_of([] { fail_errno("file.write", "cannot write x", ENOSPC); });
  EXPECT_NE(text.find("No space left on device (ENOSPC); free some space"), std::string::npos);
}

TEST(Error, RegistryHasEachCodeOnceAndFindsWhatItBelongsTo) {
  std::set<std::string_view> seen;
  for (const ErrorCode& row : error_codes())
    for (const std::string_view code : codes_of(row))
      EXPECT_TRUE(seen.insert(code).second) << code << " has two rows";
  ASSERT_NE(find_error_code("file.empty"), nullptr);
  EXPECT_EQ(find_error_code("conv2d"), find_error_code("max_unpool2d"));
  EXPECT_EQ(find_error_code("conv2d.groups"), find_error_code("conv2d"));
  EXPECT_NE(find_error_code("jit.twins"), nullptr);
  EXPECT_EQ(find_error_code("nonsense"), nullptr);
  EXPECT_EQ(find_error_code("nonsense.more"), nullptr);
}

}  // namespace
}  // namespace weft
