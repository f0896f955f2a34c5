#include <nlohmann/json.hpp>

#include "tests/viz/recording.h"
#include "weft/base/context.h"
#include "weft/tensor/tensor.h"
#include "weft/viz/session.h"
#include "weft/viz/views.h"

namespace weft::viz {

Recording::Recording() {
  char pattern[] = "/tmp/weft_test_XXXXXX";
  if (::mkdtemp(pattern) == nullptr) fail_runtime("viz", "no directory for tests");
  dir_ = pattern;
  Options options;
  options.viz = 1;
  options.viz_file = file();
  Context context(options);
  const ContextScope scope(context);
  const Tensor x = Tensor::arange(64).cast(DType::F32).reshape({8, 8});
  const Tensor y = (x * 2 + 1).exp2().sum(1);
  (y / y.max()).realize();
}

Recording::~Recording() { std::filesystem::remove_all(dir_); }

void RecordingTest::SetUp() { file = recording.file(); }

int64_t RecordingTest::a_pass_with_a_graph() const {
  using Json = nlohmann::json;
  const auto session = Session::open(file);
  const Json passes = Json::parse(view_json(*session, "passes", {{"changed", "1"}}));
  for (const Json& pass : passes["passes"]) {
    const std::string id = std::to_string(int64_t{pass["pass"]});
    if (Json::parse(view_json(*session, "pass", {{"pass", id}}))["form"] == "graph" &&
        pass["size_after"] > 4)
      return pass["pass"];
  }
  return -1;
}

}  // namespace weft::viz
