// What requests may say.
#include "weft/serve/requests.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/llm/request_options.h"
#include "weft/serve/sampling_fields.h"

namespace weft::serve {
namespace {

TEST(Requests, HaveTheOptionsThatAllFacesHave) {
  llm::RequestPlan plan;
  const auto known = common_parameters();
  for (const llm::RequestOption& o : request_options(plan))
    EXPECT_TRUE(o.served.empty() || std::ranges::find(known, o.served) != known.end())
        << o.name << ": " << o.served;
}

}  // namespace
}  // namespace weft::serve
