// Tar archives, plain and compressed; row P11 of the attack catalogue.
#include "weft/io/tar.h"

#include <gtest/gtest.h>

#include "tests/io/archive_bytes.h"
#include "weft/io/zstd.h"

namespace weft {
namespace {

std::vector<NamedArray> parse(const std::string& file) { return untar(as_bytes(file), "a.tar"); }
TarPart file(std::string name, std::string content = "abc") {
  return {std::move(name), std::move(content)};
}
std::string typed(char type, std::string content = "") {
  return tar_of({{"x", std::move(content), type, {}, "/etc/passwd"}, file("a")});
}

class TarTest : public ScratchDir {};

TEST_F(TarTest, ReadsFiles) {
  const std::string big(2000, 'x');
  const std::string tar = tar_of({file("./a"), {"d", "", '5'}, file("d/b", big), file("e", "")});
  const auto files = parse(tar);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].name, "a");
  EXPECT_EQ(as_text(files[1].array.bytes), big);
  EXPECT_EQ(files[2].array.numel(), 0);
}

TEST_F(TarTest, LongNames) {
  const std::string name(300, 'n');
  const auto gnu = parse(tar_of({{"././@LongLink", name + '\0', 'L'}, file("cut"), file("b")}));
  EXPECT_EQ(gnu.at(0).name, name);
  EXPECT_EQ(gnu.at(1).name, "b");
  const std::string record = pax_record("mtime", "1") + pax_record("path", name);
  const auto pax = parse(tar_of({{"x", record, 'x'}, file("cut"), file("b")}));
  EXPECT_EQ(pax.at(0).name, name);
  EXPECT_EQ(pax.at(1).name, "b");
}

TEST_F(TarTest, Compressed) {
  const std::string plain = tar_of({file("a", std::string(100'000, 'q'))});
  const std::vector<std::byte> packed = gzip(as_bytes(plain));
  const auto files = read_tar(write("a.tar.gz", as_text(packed)));
  EXPECT_EQ(files.at(0).array.numel(), 100'000);
  // Two members, one after the other, and zeros.
  const std::vector<std::byte> first = gzip(as_bytes(plain.substr(0, 700)));
  const std::vector<std::byte> rest = gzip(as_bytes(plain.substr(700)));
  const std::string both = std::string(as_text(first)) + std::string(as_text(rest));
  EXPECT_EQ(read_tar(write("b", both + std::string(9, '\0'))).size(), 1u);
  EXPECT_ERROR(read_tar(write("b", both + "junk")), "gzip.damaged");
}

TEST_F(TarTest, P11Bombs) {
  const std::vector<std::byte> packed = gzip(as_bytes(std::string(std::size_t{4} << 20, '\0')));
  UnpackLimits limits;
  limits.most_bytes = 1 << 20;
  const std::string path = write("a.gz", as_text(packed));
  EXPECT_ERROR(read_tar(path, limits), "compressed bytes unpack to more than 1048576");
  limits = {};
  limits.most_members = 1;
  EXPECT_ERROR(untar(as_bytes(tar_of({file("a"), file("b")})), "a", nullptr, limits),
               "more than 1 files");
}

TEST_F(TarTest, P11NamesAndKinds) {
  for (const char* bad : {"../x", "/etc/passwd", "a/../../b", "C:/x", "a\\b"})
    EXPECT_ERROR(parse(tar_of({file(bad)})), "the name '") << bad;
  for (const char type : {'1', '2', '3', '4', '6'}) {  // links, devices, pipes: nothing is there
    const auto files = parse(typed(type));
    ASSERT_EQ(files.size(), 1u) << type;
    EXPECT_EQ(files[0].name, "a");
    EXPECT_ERROR(parse(typed(type, "abc")), "with 3 bytes of content");
  }
  EXPECT_ERROR(parse(typed('S')), "a sparse file");
  EXPECT_ERROR(parse(typed('Z')), "unknown type 'Z'");
  EXPECT_ERROR(parse(tar_of({file("a"), file("a")})), "'a' is there twice");
}

TEST_F(TarTest, P11Numbers) {
  EXPECT_ERROR(parse(tar_of({{"a", "abc", '0', "77777777777"}})), "read.truncated");
  EXPECT_ERROR(parse(tar_of({{"a", "abc", '0', "9"}})), "is not an octal number");
  EXPECT_ERROR(parse(tar_of({{"a", "abc", '0', "-1"}})), "is not an octal number");
  EXPECT_ERROR(parse(tar_of({{"a", "abc", '0', std::string(12, '\xff')}})), "negative or above");
  std::string binary(12, '\0');
  binary[0] = '\x80', binary[11] = 3;
  EXPECT_EQ(parse(tar_of({{"a", "abc", '0', binary}})).at(0).array.numel(), 3);
  const auto pax = [](const std::string& records, char type = 'x') {
    return tar_of({{"x", records, type}, file("a")});
  };
  EXPECT_ERROR(parse(pax(pax_record("size", "99999999"))), "read.truncated");
  EXPECT_ERROR(parse(pax(pax_record("size", "-1"))), "no number");
  EXPECT_ERROR(parse(pax(pax_record("size", "3") + pax_record("size", "3"))), "the second one");
  EXPECT_ERROR(parse(pax(pax_record("path", "../x"))), "leads out");
  EXPECT_ERROR(parse(pax(pax_record("path", "x"), 'g')), "for all members");
  EXPECT_ERROR(parse(pax(pax_record("GNU.sparse.major", "1"))), "a sparse file");
  EXPECT_ERROR(parse(pax("999999 path=x\n")), "malformed pax");
  EXPECT_ERROR(parse(pax("0 path=x\n")), "malformed pax");
  EXPECT_ERROR(parse(pax("path=x\n")), "malformed pax");
}

TEST_F(TarTest, P11Ends) {
  const std::string whole = tar_of({file("a")});
  EXPECT_ERROR(parse(std::string(600, '0')), "checksum");
  EXPECT_ERROR(parse(whole + "x"), "something follows its end");
  EXPECT_ERROR(parse(whole.substr(0, 1024)), "read.truncated");  // no block of zeros
  EXPECT_ERROR(parse(tar_of({{"x", pax_record("path", "y"), 'x'}})), "without its member");
  std::string flipped = whole;
  flipped[3] = 'b';
  EXPECT_ERROR(parse(flipped), "checksum is not");
}

TEST_F(TarTest, Zstd) {
  if (!has_zstd_library()) GTEST_SKIP() << "libzstd is not here";
  // A frame with one raw block (RFC 8878, 3.1.1): single segment, 5 bytes.
  const std::string frame("\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello", 14);
  EXPECT_EQ(as_text(unzstd(as_bytes(frame), 100, "a")), "hello");
  EXPECT_EQ(as_text(unzstd(as_bytes(frame + frame), 100, "a")), "hellohello");
  EXPECT_ERROR(unzstd(as_bytes(frame), 4, "a"), "zstd.size");
  EXPECT_ERROR(unzstd(as_bytes(frame.substr(0, 12)), 100, "a"), "zstd.damaged");
  EXPECT_ERROR(unzstd(as_bytes(frame + "junk"), 100, "a"), "zstd.damaged");
}

}  // namespace
}  // namespace weft
