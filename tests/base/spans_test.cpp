#include "weft/base/spans.h"
#include "weft/base/format.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "weft/base/context.h"
#include "weft/base/options.h"

namespace weft {
namespace {

TEST(Tracer, OffRecordsNothing) {
  Tracer tracer;
  { Span span(tracer, "step"); }
  EXPECT_EQ(tracer.recorded(), 0u);
}

TEST(Tracer, KeepsTheNewestAndExportsJson) {
  Tracer tracer;
  tracer.start(4);
  for (int i = 0; i < 6; ++i) tracer.record("kernel", 1000, 3000, "r_" + std::to_string(i), i);
  EXPECT_EQ(tracer.recorded(), 4u);
  tracer.add(Counter::Kernels, 6);
  const auto json = nlohmann::json::parse(tracer.chrome_json());
  ASSERT_EQ(json["traceEvents"].size(), 4u);
  const auto& first = json["traceEvents"][0];
  EXPECT_EQ(first["args"]["detail"], "r_2");
  EXPECT_EQ(first["ph"], "X");
  EXPECT_EQ(first["dur"], 2.0);
  EXPECT_EQ(json["otherData"]["kernels"], 6);
}

TEST(Tracer, DevicesHaveTracksOfTheirOwn) {
  Tracer tracer;
  tracer.record_on("A queue 0", "kernel", 1000, 3000);
  tracer.start();
  for (const char* track : {"A queue 0", "A queue 1", "A queue 0"})
    tracer.record_on(track, "kernel", 1000, 3000, "add", 7);
  tracer.record("step", 500, 4000);
  EXPECT_EQ(tracer.recorded(), 4u);
  const auto all = nlohmann::json::parse(tracer.chrome_json())["traceEvents"];
  EXPECT_EQ(all[0]["tid"], all[2]["tid"]);
  EXPECT_NE(all[0]["tid"], all[1]["tid"]);
  EXPECT_EQ(all[1]["args"]["amount"], 7);
  EXPECT_NE(all[0]["pid"], all[3]["pid"]);
  std::vector<std::string> names;
  for (const auto& event : all)
    if (event["ph"] == "M") names.push_back(event["args"]["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"devices", "A queue 0", "A queue 1"}));
}

TEST(Tracer, ManyThreadsRecordAndCount) {
  Tracer tracer;
  tracer.start(100);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        Span span(tracer, "copy", "a detail that is much longer than the space a span has for it");
        tracer.add(Counter::Copies);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tracer.recorded(), 100u);
  EXPECT_EQ(tracer.value(Counter::Copies), 4000);
  EXPECT_TRUE(nlohmann::json::accept(tracer.chrome_json()));
}

TEST(Context, WritesTheProfileAskedFor) {
  const std::string path = testing::TempDir() + "weft_profile_test.json";
  {
    Options options;
    options.profile = path;
    Context context(options);
    Span span(context.tracer(), "step");
  }
  std::FILE* file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  const auto json = nlohmann::json::parse(file);
  std::fclose(file);
  std::remove(path.c_str());
  EXPECT_EQ(json["traceEvents"][0]["name"], "step");
}

TEST(Format, HumanNumbers) {
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(INT64_MAX), "8.0 EiB");
}

}  // namespace
}  // namespace weft
