// Devices, memory, timelines, the kernel cache: what holds them together and what they refuse.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/device/samples.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/spans.h"
#include "weft/device/compiler.h"
#include "weft/device/driver.h"

namespace weft {
namespace {

using testing::Loaded;

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}
#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/weft-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_; }
  std::string script(const std::string& name, const std::string& body) const {
    const std::string file = path_ + "/" + name;
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    ::chmod(file.c_str(), 0755);
    return file;
  }

 private:
  std::string path_;
};

// ---- the table

TEST(DeviceTable, NamesAndIds) {
  Context context(testing::quiet_options());
  DeviceTable& table = context.get<DeviceTable>();
  EXPECT_EQ(table.open("CPU").name(), "CPU:X86");
  EXPECT_EQ(&table.open("cpu:x86"), &table.open("CPU"));
  EXPECT_EQ(table.open("CPU:1").name(), "CPU:X86:1");
  EXPECT_EQ(table.open("interp").name(), "CPU:INTERP");
  EXPECT_EQ(table.open("NULL").name(), "NULL:X86");
  EXPECT_EQ(table.open("CPU:C").id(), 1);
  EXPECT_EQ(table.open("CPU:INTERP").id(), 2);
  EXPECT_EQ(table.open("NULL:C:1").id(), 3 + 64);
  EXPECT_EQ(&table.open(DeviceId{3 + 64}), &table.open("NULL:C:1"));
  EXPECT_EQ(&table.default_device(), &table.open("CPU"));
  const std::string unknown = message_of([&] { table.open("CUDDA"); });
  EXPECT_HAS(unknown, "CUDDA");
  EXPECT_HAS(message_of([&] { table.open("CPU:INTRP"); }), "did you mean CPU:INTERP");
  EXPECT_FALSE(table.has("CUDDA"));
  EXPECT_FALSE(table.has("CPU:256"));
  EXPECT_TRUE(table.has("x86:255"));
  for (const DeviceInfo& info : table.probe()) {
    EXPECT_TRUE(table.has(info.name)) << info.name;
    EXPECT_HAS(unknown, info.name);
    // Of other machines it depends on what is installed.
    const bool of_host =
        info.name.find(':') != std::string::npos && !info.name.starts_with("CUDA:");
    EXPECT_TRUE(info.available || !of_host) << info.name << info.detail;
    EXPECT_FALSE(info.detail.empty()) << info.name;
  }
}

template <int number, char letter>
Driver driver() {
  static constexpr char kName[] = {letter};
  static constexpr DeviceKind kKinds[] = {{number, {kName, 1}, nullptr, nullptr}};
  return kKinds;
}

TEST(DeviceTable, KindsHaveNumbersAndNamesOfTheirOwn) {
  const auto kinds = [](std::initializer_list<DriverFunction> drivers) {
    return kinds_of(drivers);
  };
  const std::vector<DeviceKind> two = kinds({driver<9, 'A'>, driver<3, 'B'>});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].name, "B") << "by number, whatever the files are called";
  EXPECT_EQ(two[1].number, 9);
  EXPECT_HAS(message_of([&] { kinds({driver<3, 'A'>, driver<3, 'B'>}); }),
             "device A of number 3 and device B of number 3");
  EXPECT_HAS(message_of([&] { kinds({driver<3, 'A'>, driver<4, 'A'>}); }),
             "another name or number");
  EXPECT_HAS(message_of([&] { kinds({driver<64, 'A'>}); }), "give it one from 0 to 63");
  EXPECT_HAS(message_of([&] { kinds({driver<-1, 'A'>}); }), "device A has number -1");
}

TEST(DeviceTable, WithoutACompiler) {
  Folder empty;
  Options options = testing::quiet_options();
  options.path = empty.path();
  Context context(options);
  DeviceTable& table = context.get<DeviceTable>();
  const std::string refused = message_of([&] { table.open("CPU:C"); });
  EXPECT_HAS(refused, "no C compiler");
  EXPECT_HAS(refused, "apt install clang-19");
  EXPECT_THROW(table.open("CPU:C"), DeviceError);
  EXPECT_EQ(table.open("CPU").name(), "CPU:X86");
  const auto infos = table.probe();
  EXPECT_FALSE(infos[0].available);
  EXPECT_HAS(infos[0].detail, "apt install");
  EXPECT_TRUE(infos[1].available);
}

TEST(DeviceTable, ACompilerThatIsNotThere) {
  Options options = testing::quiet_options();
  options.cc = "no-such-compiler";
  Context context(options);
  EXPECT_HAS(message_of([&] { context.get<DeviceTable>().open("CPU:C"); }), "no-such-compiler");
}

// ---- the compiler

std::string compile_with(const std::string& cc, int seconds = 60) {
  Options options = testing::quiet_options();
  options.cc = cc;
  Context context(options);
  const auto compiler = find_c_compiler(context);
  const std::string texts[] = {"int f(void) { return 1; }\n", "int g(void) { retrun 1; }\n"};
  return message_of([&] { compile_c(context, *compiler, {}, texts, seconds); });
}

TEST(Compiler, DiagnosticsAreQuoted) {
  const std::string said = compile_with("gcc");
  EXPECT_HAS(said, "retrun");
  EXPECT_HAS(said, "gcc");
}

TEST(Compiler, CrashesSilenceAndHangsAreErrors) {
  Folder folder;
  EXPECT_HAS(compile_with(folder.script("crash", "kill -11 $$")), "signal 11");
  EXPECT_HAS(compile_with(folder.script("silent", "exit 0")), "wrote no object");
  EXPECT_HAS(compile_with(folder.script(
                 "many", "for i in 1 2 3 4 5 6 7 8 9; do echo line$i >&2; done; exit 3")),
             "line6");
  const uint64_t start = now_ns();
  EXPECT_HAS(compile_with(folder.script("hang", "sleep 100 & sleep 100"), 1),
             "no answer within 1 s");
  EXPECT_LT(now_ns() - start, 20'000'000'000u);
}

TEST(Compiler, GarbageObjectsAreErrors) {
  Folder folder;
  // Called as "... -o FILE": the last argument.
  Options options = testing::quiet_options();
  options.cc = folder.script("liar", "for a; do last=$a; done; head -c 5000 /dev/zero > \"$last\"");
  Context context(options);
  Device& device = context.get<DeviceTable>().open("CPU:C");
  EXPECT_HAS(message_of([&] { Loaded(device, {testing::sample_add()}); }), "ELF");
}

TEST(Compiler, ManyKernelsMakeTwoProcesses) {
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("CPU:C");
  std::vector<LinearProgram> programs(3, testing::sample_sum());
  Loaded few(device, programs);
  EXPECT_EQ(context.tracer().value(Counter::CompilerCalls), 1);
  programs.resize(20, testing::sample_add());
  Loaded many(device, programs);
  EXPECT_EQ(context.tracer().value(Counter::CompilerCalls), 3);
  EXPECT_EQ(context.tracer().value(Counter::KernelsCompiled), 23);
}

// ---- the cache

struct CacheRun {
  int64_t compiled, hits;
};
CacheRun run_with_cache(const std::string& folder, const char* cc = "gcc") {
  Options options = testing::quiet_options();
  options.cache = true;
  options.cache_dir = folder + "/cache";
  options.cc = cc;
  Context context(options);
  Device& device = context.get<DeviceTable>().open("CPU:C");
  Loaded k(device, {testing::sample_sum()});
  auto out = device.allocate(4), x = device.allocate(400);
  std::vector<float> ones(100, 1.0f);
  device.copy_in({x.get()}, std::as_bytes(std::span(ones)));
  k.run(0, {{out.get()}, {x.get()}}, {100});
  EXPECT_EQ(*static_cast<float*>(out->data()), 100.0f);
  return {context.tracer().value(Counter::KernelsCompiled),
          context.tracer().value(Counter::CacheHits)};
}

std::vector<std::filesystem::path> entries(const std::string& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder))
    if (e.is_regular_file()) found.push_back(e.path());
  return found;
}

TEST(ObjectCache, SecondTimeNothingIsCompiled) {
  Folder folder;
  EXPECT_EQ(run_with_cache(folder.path()).compiled, 1);
  EXPECT_EQ(run_with_cache(folder.path()).compiled, 0);
  EXPECT_EQ(run_with_cache(folder.path(), "clang-19").compiled,
            1);  // another compiler's is not ours
  struct stat info;
  ASSERT_EQ(::stat((folder.path() + "/cache/objects").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST(ObjectCache, DamageCountsAsAbsent) {
  Folder folder;
  run_with_cache(folder.path());
  const auto files = entries(folder.path());
  ASSERT_EQ(files.size(), 1u);
  std::string content(MappedFile(files[0].string()).text());
  for (size_t at : {size_t{3}, size_t{9}, size_t{30}, size_t{200}, content.size() - 1}) {
    std::string damaged = content;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    std::ofstream(files[0], std::ios::binary) << damaged;
    EXPECT_EQ(run_with_cache(folder.path()).compiled, 1) << at;
  }
  std::ofstream(files[0], std::ios::binary) << content.substr(0, 50);
  EXPECT_EQ(run_with_cache(folder.path()).compiled, 1);
  std::ofstream(files[0], std::ios::binary) << "";
  EXPECT_EQ(run_with_cache(folder.path()).compiled, 1);
  EXPECT_EQ(run_with_cache(folder.path()).hits, 1);
}

TEST(ObjectCache, NowhereToWriteIsNoError) {
  EXPECT_EQ(run_with_cache("/proc/nowhere").compiled, 1);
}

// ---- memory

TEST(Allocator, AlignsReusesAndCounts) {
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("CPU:INTERP");
  void* first = nullptr;
  {
    auto a = device.allocate(5000, "a"), none = device.allocate(0), big = device.allocate(5 << 20);
    for (const auto& b : {a, none, big}) EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data()) % 64, 0u);
    first = a->data();
    EXPECT_EQ(device.allocator().stats().live_bytes, 5000 + (5 << 20));
  }
  EXPECT_EQ(device.allocator().stats().live_bytes, 0);
  EXPECT_EQ(device.allocator().stats().peak_bytes, 5000 + (5 << 20));
  EXPECT_EQ(device.allocate(5000)->data(), first);
  EXPECT_EQ(device.allocator().stats().cache_hits, 1);
  EXPECT_GT(device.allocator().stats().cached_bytes, 5 << 20);
  device.allocator().trim();
  EXPECT_EQ(device.allocator().stats().cached_bytes, 0);
}

TEST(Allocator, TakesWhatWasFreedLast) {
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("CPU:INTERP");
  auto a = device.allocate(5000), b = device.allocate(5000), larger = device.allocate(6000);
  const void *first = a->data(), *last = b->data();
  larger.reset(), a.reset(), b.reset();
  const auto again = device.allocate(5000), before = device.allocate(5000);
  EXPECT_EQ(again->data(), last);
  EXPECT_EQ(before->data(), first);
}

TEST(Allocator, SizesThatNobodyAsksForMakeRoom) {
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("CPU:INTERP");
  Allocator allocator(context, 0, /*cache_limit=*/1 << 20);
  allocator.allocate(device, 1 << 20, "of before");
  for (int i = 0; i < 3; ++i) allocator.allocate(device, 100000, "of now");
  EXPECT_EQ(allocator.stats().cache_hits, 2);
  EXPECT_LT(allocator.stats().cached_bytes, 1 << 20);
  allocator.allocate(device, 4 << 20, "above the limit");
  allocator.allocate(device, 100000, "still kept");
  EXPECT_EQ(allocator.stats().cache_hits, 3);
}

TEST(Allocator, TheCapNamesTheLargest) {
  Options options = testing::quiet_options();
  options.memory_cap = 1 << 20;
  Context context(options);
  Device& device = context.get<DeviceTable>().open("CPU:INTERP");
  auto small = device.allocate(1000, "bias"), large = device.allocate(600000, "conv1.weight");
  { auto freed = device.allocate(400000, "freed"); }
  const std::string refused = message_of([&] { device.allocate(500000, "activations"); });
  EXPECT_HAS(refused, "activations");
  EXPECT_HAS(refused, "WEFT_MEMORY_CAP");
  EXPECT_HAS(refused, "largest: conv1.weight 585.9 KiB, bias 1000 B");
  EXPECT_EQ(refused.find("freed"), std::string::npos);
  try {
    device.allocate(500000);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Memory);
  }
  large.reset();
  EXPECT_NE(device.allocate(500000), nullptr);
}

TEST(Allocator, RefusalsChangeNothing) {
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("CPU:INTERP");
  auto keep = device.allocate(64);
  EXPECT_HAS(message_of([&] { device.allocate(INT64_MAX, "x"); }), "this machine's memory");
  EXPECT_HAS(message_of([&] { device.allocate(int64_t{1} << 50, "x"); }), "this machine's memory");
  device.allocator().fail_after(1);
  auto fine = device.allocate(64);
  EXPECT_HAS(message_of([&] { device.allocate(64, "y"); }), "injected");
  EXPECT_NE(device.allocate(64), nullptr);
  EXPECT_EQ(device.allocator().stats().live_buffers, 2);
}

/// Of the mapping that `at` is in, as /proc/self/smaps has them: "hg" where huge pages are wanted.
std::string mapping_flags(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    const auto address = reinterpret_cast<uintptr_t>(at);
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2)
      inside = begin <= address && address < end;
    else if (inside && line.starts_with("VmFlags:"))
      return line + " ";
  }
  return "";
}

TEST(Allocator, HugePagesAreWantedOutsideOfScopesOfSmallOnes) {
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("CPU");
  constexpr int64_t kBytes = 8 << 20;
  std::vector<std::shared_ptr<Buffer>> kept;  // so that no block is given twice
  const auto wants_huge = [&] {
    kept.push_back(device.allocate(kBytes));
    return mapping_flags(kept.back()->data()).find(" hg ") != std::string::npos;
  };
  if (!wants_huge()) GTEST_SKIP() << "this kernel has no huge pages, or no smaps";
  {
    const SmallPagesScope outer;
    EXPECT_FALSE(wants_huge());
    { const SmallPagesScope inner; }
    EXPECT_FALSE(wants_huge());
  }
  EXPECT_TRUE(wants_huge());
}

TEST(Allocator, BuffersMayOutliveTheContext) {
  std::shared_ptr<Buffer> kept;
  {
    Context context(testing::quiet_options());
    kept = context.get<DeviceTable>().open("CPU:INTERP").allocate(1000);
  }
  std::memset(kept->data(), 1, 1000);
}

TEST(Device, CopiesStayInside) {
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("CPU:INTERP");
  auto a = device.allocate(16), b = device.allocate(16);
  std::vector<std::byte> bytes(17);
  EXPECT_THROW(device.copy_in({a.get()}, bytes), InternalError);
  EXPECT_THROW(device.copy_out(bytes, {a.get()}), InternalError);
  bytes.resize(8, std::byte{5});
  device.copy_in({a.get(), 8}, bytes);
  const Command copy = Command::copy({a.get(), 8}, {b.get(), 4}, 8);
  device.submit(0, {&copy, 1});
  EXPECT_EQ(static_cast<char*>(b->data())[4], static_cast<char*>(a->data())[8]);
  const Command bad = Command::copy({a.get(), 8}, {b.get(), 4}, 9);
  EXPECT_THROW(device.submit(0, {&bad, 1}), InternalError);
}

// ---- timelines

TEST(Timeline, WaitsDeadlinesCancels) {
  Timeline line;
  line.signal(3);
  EXPECT_TRUE(line.wait(3));
  EXPECT_FALSE(line.wait(4, now_ns() + 5'000'000));
  std::atomic<bool> cancel{true};
  EXPECT_FALSE(line.wait(4, 0, &cancel));
  EXPECT_THROW(line.signal(2), InternalError);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    line.signal(7);
  });
  EXPECT_TRUE(line.wait(5));
  later.join();
}

TEST(Device, SubmissionsReachTheirPoints) {
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("CPU:INTERP");
  Timeline mine;
  const TimelinePoint signal{&mine, 10};
  const TimelinePoint first = device.submit(0, {}, {}, {&signal, 1});
  EXPECT_TRUE(mine.reached(10));
  const TimelinePoint second = device.submit(0, {});
  EXPECT_GT(second.value, first.value);
  device.wait(second);
  const TimelinePoint never{&device.timeline(0), second.value + 5};
  EXPECT_HAS(message_of([&] { device.submit(0, {}, {&never, 1}); }), "never submitted");
  EXPECT_HAS(message_of([&] { device.wait(never, now_ns() + 1'000'000); }), "deadline");
  // A failed submission reaches its point, so that nobody waits for ever.
  const Command bad = Command::copy({}, {}, 1);
  EXPECT_THROW(device.submit(0, {&bad, 1}), InternalError);
  EXPECT_TRUE(device.timeline(0).reached(second.value + 1));
}

TEST(NullDevice, QueuesMustWaitForEachOther) {
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("NULL");
  ASSERT_EQ(device.queues(), 2);
  const LinearProgram add = testing::sample_add();
  const auto kernels = device.load(std::vector<ProgramSource>{{&add, "", "add"}});
  auto a = device.allocate(4096, "a"), b = device.allocate(4096, "b"),
       c = device.allocate(4096, "c");
  const BufferSlice makes_b[] = {{b.get()}, {a.get()}, {a.get()}};
  const BufferSlice makes_c[] = {{c.get()}, {b.get()}, {b.get()}};
  const Command first = Command::launch(*kernels[0], makes_b, {}, 64);
  const Command then = Command::launch(*kernels[0], makes_c, {}, 64);
  const TimelinePoint done = device.submit(0, {&first, 1});
  const std::string refused = message_of([&] { device.submit(1, {&then, 1}); });
  EXPECT_HAS(refused, "queue 1 reads b");
  const TimelinePoint read = device.submit(1, {&then, 1}, {&done, 1});
  // Writing b again must wait for its reader.
  EXPECT_HAS(message_of([&] { device.submit(0, {&first, 1}); }), "queue 0 writes b");
  const TimelinePoint again = device.submit(0, {&first, 1}, {&read, 1});
  // Knowledge is passed on: having waited for `again`, queue 1 knows everything before it.
  EXPECT_NO_THROW(device.submit(1, {&then, 1}, {&again, 1}));
}

}  // namespace
}  // namespace weft
