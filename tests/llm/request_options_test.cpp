// The options of a request, which all faces have.
#include "weft/llm/request_options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/llm/llm_command.h"
#include "tests/source_dir.h"
#include "weft/base/file.h"

namespace weft::llm {
namespace {

TEST(RequestOptions, AreReadAndShown) {
  RequestPlan plan;
  const auto options = request_options(plan);
  const auto set = [&](std::string_view name, Texts texts) {
    const RequestOption& option = find_option(options, name);
    option.set(texts);
    return option.text();
  };
  EXPECT_EQ(set("temperature", {"0.25"}), "0.25");
  EXPECT_EQ(set("repetition_penalty", {"0.01"}), "0.01");  // a float below it
  EXPECT_EQ(set("seed", {"18446744073709551615"}), "18446744073709551615");
  EXPECT_EQ(set("stop", {"a,b", "c"}), "a,b,c");
  EXPECT_EQ(plan.request.stop, (Texts{"a,b", "c"}));
  EXPECT_EQ(set("stop_tokens", {"1,2", "3"}), "1,2,3");
  EXPECT_EQ(set("logit_bias", {"7=-1.5", "8=2"}), "7=-1.5,8=2");
  EXPECT_EQ(set("ignore_end", {"true"}), "true");
  EXPECT_EQ(set("choices", {"yes", "no"}), "yes,no");
  EXPECT_NE(plan.made().grammar, nullptr);
  EXPECT_EQ(set("choices", {}), "");
  EXPECT_EQ(plan.made().grammar, nullptr);
}

TEST(RequestOptions, RefuseWhatTheyCannotBe) {
  RequestPlan plan;
  const auto options = request_options(plan);
  const auto set = [&](std::string_view name, Texts texts) {
    find_option(options, name).set(texts);
  };
  EXPECT_ERROR(set("top_p", {"1.5"}), "top_p is '1.5'; it has to be a number, 0 to 1");
  EXPECT_ERROR(set("top_k", {"2147483648"}), "top_k is '2147483648'; it has to be an integer");
  EXPECT_ERROR(set("max_tokens", {"5x"}),
               "max_tokens is '5x'; it has to be an integer, -1 or more");
  EXPECT_ERROR(set("ignore_end", {"yes"}), "ignore_end is 'yes'; it has to be true or false");
  EXPECT_ERROR(set("stop_tokens", {"-1"}), "it has to be ids of tokens");
  EXPECT_ERROR(set("logit_bias", {"x=1"}), "logit_bias is 'x=1'; it has to be TOKEN=BIAS");
  EXPECT_ERROR(set("heat", {"1"}), "there is no option 'heat'; there are: max_tokens");
  set("pattern", {"a"});
  set("choices", {"a"});
  EXPECT_ERROR(plan.made(), "pattern and choices are given");
}

/// A new option is a row of the list; this says where it is missing. Likewise of the server
/// (tests/serve/requests_test.cpp) and of Python (tests/python/models/test_llm.py).
TEST_F(LlmCommand, EveryFaceHasTheOptionsOfARequest) {
  RequestPlan plan;
  const std::string run = weft({"run", "--help"}).out, chat = weft({"chat", "--help"}).out;
  const MappedFile header(std::string(source_dir()) + "/weft/c/llm.h");
  for (const RequestOption& o : request_options(plan)) {
    std::string flag(o.name);
    std::ranges::replace(flag, '_', '-');
    const bool* const* on = std::get_if<bool*>(&o.place);
    flag = (on && **on ? "--no-" : "--") + flag;
    EXPECT_NE(run.find(flag), std::string::npos) << "weft llm run " << flag;
    EXPECT_NE(chat.find(flag), std::string::npos) << "weft llm chat " << flag;
    std::string in_c(o.name);
    if (on) std::ranges::transform(in_c, in_c.begin(), [](char c) { return std::toupper(c); });
    if (o.name == "continues") in_c = "NEW_TEXT";  // a flag is 0 where nothing is said
    if (o.name == "reuse_prefix") in_c = "FROM_START";
    if (o.name == "logit_bias") in_c = "biases";
    EXPECT_NE(header.text().find(in_c), std::string::npos) << "weft/c/llm.h: " << in_c;
  }
}

}  // namespace
}  // namespace weft::llm
