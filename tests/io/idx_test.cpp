#include "weft/io/idx.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "tests/io/scratch_dir.h"
#include "weft/base/context.h"
#include "weft/io/gzip.h"

namespace weft {
namespace {

std::string big_endian(uint32_t x) {
  return {static_cast<char>(x >> 24), static_cast<char>(x >> 16), static_cast<char>(x >> 8),
          static_cast<char>(x)};
}
std::string idx(uint8_t code, std::vector<uint32_t> shape, std::string_view data) {
  std::string file{'\0', '\0', static_cast<char>(code), static_cast<char>(shape.size())};
  for (const uint32_t dim : shape) file += big_endian(dim);
  return file + std::string(data);
}
std::string zipped(std::string_view text) { return as_text(gzip(as_bytes(text))); }

class IdxTest : public ScratchDir {
 protected:
  Options options() const {
    Options o;
    o.cache_dir = at("cache");
    return o;
  }
  size_t cached() const {
    if (!std::filesystem::exists(at("cache/inflated"))) return 0;
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(at("cache/inflated")), {}));
  }
  std::string the_cached() const {
    return std::filesystem::directory_iterator(at("cache/inflated"))->path().string();
  }
};

TEST_F(IdxTest, ReadsEveryElementType) {
  const auto parse = [](const std::string& file) { return parse_idx(as_bytes(file), "f"); };
  const HostArray bytes = parse(idx(8, {2, 3}, "abcdef"));
  EXPECT_EQ(bytes.dtype, DType::U8);
  EXPECT_EQ(bytes.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(as_text(bytes.bytes), "abcdef");
  EXPECT_EQ(as_text(parse(idx(0x0b, {1}, std::string("\x01\x02", 2))).bytes), "\x02\x01");
  const HostArray f = parse(idx(0x0d, {1}, std::string("\x3f\xc0\0\0", 4)));
  float value;
  std::memcpy(&value, f.bytes.data(), 4);
  EXPECT_EQ(value, 1.5f);
  EXPECT_EQ(parse(idx(0x0e, {0, 4}, "")).numel(), 0);
  EXPECT_EQ(parse(idx(9, {}, "x")).numel(), 1);
  EXPECT_EQ(parse(idx(8, std::vector<uint32_t>(255, 1), "x")).shape.size(), 255u);
}

TEST_F(IdxTest, RefusesWhatIsNotIdx) {
  const auto parse = [](const std::string& file) { parse_idx(as_bytes(file), "f.idx"); };
  EXPECT_ERROR(parse("PK\x03\x04xxxx"), "f.idx: starts with bytes 0x50 0x4b");
  EXPECT_ERROR(parse(idx(0x0a, {1}, "x")), "element code 0x0a at offset 2 is unknown");
  EXPECT_ERROR(parse(idx(8, {5}, "abcd")), "takes 5 bytes after the 8-byte header, but 4");
  EXPECT_ERROR(parse(idx(8, {3}, "abcd")), "takes 3 bytes");
  EXPECT_ERROR(parse(std::string("\0\0\x08\x03\0\0", 6)), "f.idx: 4 bytes wanted at offset 4");
  EXPECT_ERROR(parse(idx(8, {~0u, ~0u, ~0u}, "")), "more than 64 bits can count");
  EXPECT_ERROR(parse(idx(8, std::vector<uint32_t>(20, 1), "")),
               "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ... of 20 axes)");
}

TEST_F(IdxTest, GzipIsBoundedByTheHeader) {
  const auto parse = [](const std::string& file) { parse_idx(as_bytes(file), "f.gz"); };
  EXPECT_EQ(error_of([&] { parse(zipped(idx(8, {4}, "abcd"))); }), "no error");
  EXPECT_ERROR(parse(zipped(idx(8, {3}, "abcd"))), "should be 11 bytes but is more than 11");
  EXPECT_ERROR(parse(zipped(idx(8, {5}, "abcd"))), "should be 13 bytes but is 12");
  EXPECT_ERROR(parse(zipped(idx(8, {1 << 30, 1 << 10}, "abcd"))), "compressed bytes cannot hold");
  // A bomb: 64 MiB of zeros that claim to be 4 bytes. Only 13 are ever inflated.
  EXPECT_ERROR(parse(zipped(idx(8, {4}, std::string(64 << 20, '\0')))), "more than 12");
  std::string damaged = zipped(idx(8, {400}, std::string(400, 'x')));
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_ERROR(parse(damaged), "damaged near byte");
  EXPECT_ERROR(parse(zipped(idx(8, {1}, "a")) + "tail"), "4 bytes follow the end");
  const std::string whole = zipped(idx(8, {400}, std::string(400, 'x')));
  EXPECT_ERROR(parse(whole.substr(0, whole.size() - 9)), "interrupted?");
}

TEST_F(IdxTest, InflatesOnceAndVerifies) {
  const std::string path = write("a.gz", zipped(idx(8, {6}, "abcdef")));
  {
    Context context(options());
    EXPECT_EQ(as_text(read_idx(path, context).bytes), "abcdef");
  }
  ASSERT_EQ(cached(), 1u);
  struct stat info;
  ASSERT_EQ(::stat(the_cached().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0u);

  // Served from the cache: a copy whose seal is right is believed.
  Context context(options());
  const auto before = std::filesystem::last_write_time(the_cached());
  EXPECT_EQ(as_text(read_idx(path, context).bytes), "abcdef");
  EXPECT_EQ(std::filesystem::last_write_time(the_cached()), before);
}

TEST_F(IdxTest, ATamperedOrStaleCopyIsNotUsed) {
  const std::string path = write("a.gz", zipped(idx(8, {6}, "abcdef")));
  Context context(options());
  read_idx(path, context);
  std::string copy = content(the_cached());
  copy[10] ^= 1;
  write("tampered", copy);
  std::filesystem::rename(at("tampered"), the_cached());
  EXPECT_EQ(as_text(read_idx(path, context).bytes), "abcdef");
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{20}}) {
    std::filesystem::resize_file(the_cached(), cut);
    EXPECT_EQ(as_text(read_idx(path, context).bytes), "abcdef");
  }
  write("a.gz", zipped(idx(8, {6}, "ABCDEF")));
  EXPECT_EQ(as_text(read_idx(path, context).bytes), "ABCDEF");
  EXPECT_EQ(cached(), 1u);
}

TEST_F(IdxTest, WorksWithoutACacheDirectory) {
  const std::string path = write("a.gz", zipped(idx(8, {6}, "abcdef")));
  Options o = options();
  o.cache_dir = write("file", "x") + "/below";  // cannot be made
  Context context(o);
  EXPECT_EQ(as_text(read_idx(path, context).bytes), "abcdef");
  Options off = options();
  off.cache = false;
  Context uncached(off);
  EXPECT_EQ(as_text(read_idx(path, uncached).bytes), "abcdef");
  EXPECT_EQ(cached(), 0u);
}

TEST_F(IdxTest, PlainFilesAreMapped) {
  Context context(options());
  const HostArray array = read_idx(write("a", idx(8, {2}, "hi")), context);
  EXPECT_EQ(as_text(array.bytes), "hi");
  EXPECT_ERROR(read_idx(at("none"), context), "file.missing: cannot open");
}

}  // namespace
}  // namespace weft
