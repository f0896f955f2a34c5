// Zip archives: round trips, and the rows P06 to P09 of the attack catalogue.
#include "weft/io/zip.h"

#include <gtest/gtest.h>

#include "tests/io/archive_bytes.h"

namespace weft {
namespace {

std::vector<NamedArray> parse(const std::string& file) { return unzip(as_bytes(file), "a.zip"); }

ZipPart part(std::string name = "a", std::string content = "abc") {
  ZipPart p;
  p.name = std::move(name);
  p.content = std::move(content);
  return p;
}
template <class F>
std::string lying(F&& change) {
  ZipPart p = part();
  change(p);
  return zip_of({p, part("b", "defg")});
}

/// The deflate stream in a gzip file.
std::string deflated(std::string_view content) {
  const std::vector<std::byte> file = gzip(as_bytes(content));
  return std::string(as_text(std::span(file).subspan(10, file.size() - 18)));
}
ZipPart deflated_part(const std::string& name, std::string_view content) {
  ZipPart p = part(name, deflated(content));
  p.method = 8;
  p.crc = crc32_of(as_bytes(content));
  p.bytes = content.size();
  return p;
}

class ZipTest : public ScratchDir {};

TEST_F(ZipTest, RoundTrips) {
  const std::string big(100'000, 'x');
  atomic_write_file(at("a.zip"), [&](FileWriter& out) {
    ZipWriter zip(out);
    zip.add("a.txt", as_bytes("abc"));
    zip.add("folder/big", as_bytes(big));
    zip.add("empty", as_bytes(""));
    zip.finish();
  });
  const auto files = read_zip(at("a.zip"));
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(as_text(files[0].array.bytes), "abc");
  EXPECT_EQ(as_text(files[1].array.bytes), big);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(files[1].array.bytes.data()) % 64, 0u);
  EXPECT_EQ(files[2].array.numel(), 0);
}

TEST_F(ZipTest, ReadsWhatIsDeflatedAndWhatHasDescriptors) {
  const std::string text(5000, 'z');
  ZipPart late = part("late", "hello");
  late.flags = 8;
  const std::string crc = little(crc32_of(as_bytes("hello")), 4);
  for (const std::string& descriptor :
       {"PK\x07\x08" + crc + little(5, 4) + little(5, 4), crc + little(5, 4) + little(5, 4),
        "PK\x07\x08" + crc + little(5, 8) + little(5, 8), crc + little(5, 8) + little(5, 8)}) {
    late.descriptor = descriptor;
    const std::string file = zip_of({deflated_part("z", text), late, part()});
    const auto files = parse(file);
    ASSERT_EQ(files.size(), 3u);
    EXPECT_EQ(as_text(files[0].array.bytes), text);
    EXPECT_EQ(as_text(files[1].array.bytes), "hello");
  }
}

TEST_F(ZipTest, FoldersAndCommentsAreNothing) {
  const std::string file = zip_of({part("d/", ""), part("d/a", "abc")});
  std::string commented = file.substr(0, file.size() - 2) + little(5, 2) + "hello";
  for (const std::string& f : {file, commented}) {
    const auto files = parse(f);
    ASSERT_EQ(files.size(), 1u);
    EXPECT_EQ(files[0].name, "d/a");
  }
}

TEST_F(ZipTest, P06DirectoryAndHeadersAgree) {
  EXPECT_EQ(error_of([] { parse(lying([](ZipPart&) {})); }), "no error");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.local_name = "x"; })), "differ about 'a'");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.flags = 1; })), "is encrypted");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.flags = 1 << 13; })), "flags 0x2000");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.method = 12; })), "packed by method 12");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.crc = 5; })), "zip.damaged");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.bytes = 2; })), "takes 3 bytes for 2");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.bytes = p.packed = 2; })), "a hole");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.bytes = p.packed = 4; })), "they overlap");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.bytes = p.packed = 1 << 30; })), "read.truncated");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.at = 5; })), "has no header at offset 5");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.flags = 8; })), "no right descriptor");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.name = "b"; })), "'b' is listed twice");
  EXPECT_ERROR(parse(lying([](ZipPart& p) { p.name = p.local_name = "b"; })), "listed twice");
  std::string differ = zip_of({part()});
  differ[differ.find("PK\x01\x02") + 16] ^= 1;  // the checksum in the directory alone
  EXPECT_ERROR(parse(differ), "differ about 'a'");
}

TEST_F(ZipTest, P06BytesAroundAndZip64) {
  const std::string file = zip_of({part()});
  EXPECT_ERROR(parse("x" + file), "does not end at the end record");
  EXPECT_ERROR(parse(file + "x"), "something other than its comment");
  EXPECT_ERROR(parse(file.substr(0, file.size() - 1)), "has no end record");
  EXPECT_ERROR(parse(""), "has no end record");
  // Bytes before the first member that all offsets take into account.
  std::string shifted = "y" + file;
  const size_t directory = shifted.find("PK\x01\x02");
  shifted.replace(directory + 42, 4, little(1, 4));
  shifted.replace(shifted.size() - 6, 4, little(directory, 4));
  EXPECT_ERROR(parse(shifted), "'a' begins at offset 1, but what is before it ends at 0: a hole");
  const std::string body = file.substr(0, file.size() - 22), size = little(47, 8);
  const auto wide = [&](const std::string& count, const std::string& begin) {
    return body + "PK\x06\x06" + little(44, 8) + little(0x2d002d, 4) + little(0, 8) + count +
           count + size + begin + "PK\x06\x07" + little(0, 4) + little(body.size(), 8) +
           little(1, 4);
  };
  const std::string one = little(1, 8), begin = little(34, 8);
  ASSERT_EQ(body.size() - 47, 34u);
  EXPECT_EQ(error_of([&] { parse(wide(one, begin) + zip_end(0xffff, 0xffffffff, 0xffffffff)); }),
            "no error");
  EXPECT_EQ(error_of([&] { parse(wide(one, begin) + zip_end(1, 47, 34)); }), "no error");
  EXPECT_ERROR(parse(wide(one, begin) + zip_end(2, 47, 34)), "zip64 record at offset 81 differ");
  EXPECT_ERROR(parse(wide(little(1ull << 60, 8), begin) + zip_end(0xffff, 47, 34)), "at most");
  EXPECT_ERROR(parse(wide(one, little(~0ull - 8, 8)) + zip_end(1, 47, 0xffffffff)), "does not end");
  EXPECT_ERROR(parse(body + zip_end(0xffff, 47, 34)), "lacks the zip64 record");
  EXPECT_ERROR(parse(body + zip_end(5, 47, 34)), "5 items of at least 46 bytes");
}

TEST_F(ZipTest, P07Bombs) {
  const std::string zeros(std::size_t{3} << 20, '\0');
  const std::string file = zip_of({deflated_part("z", zeros)});
  EXPECT_LT(file.size(), 5000u);
  EXPECT_EQ(unzip(as_bytes(file), "a").at(0).array.numel(), 3 << 20);
  UnpackLimits limits;
  limits.most_bytes = 1 << 20;
  EXPECT_ERROR(unzip(as_bytes(file), "a", nullptr, limits),
               "unpacks to 3145728, more than 1048576");
  // A member that says too much, or too little.
  ZipPart liar = deflated_part("z", zeros);
  liar.bytes = 0xfffffff0;
  EXPECT_ERROR(parse(zip_of({liar})), "more than 268435456");
  liar.bytes = 200 << 20;
  EXPECT_ERROR(parse(zip_of({liar})), "cannot hold");
  liar.bytes = 1000;
  EXPECT_ERROR(parse(zip_of({liar})), "is more than 1000");
  limits = {};
  limits.most_members = 1;
  const std::string both = zip_of({part("a"), part("b")});
  EXPECT_ERROR(unzip(as_bytes(both), "a", nullptr, limits), "2 members; at most 1");
}

TEST_F(ZipTest, P08Names) {
  for (const char* bad : {"../x", "a/../../x", "/etc/passwd", "C:x", "a\\b", ".."})
    EXPECT_ERROR(parse(zip_of({part(bad)})), "the name '") << bad;
  EXPECT_ERROR(parse(zip_of({part(std::string("a\0b", 3))})), "has a NUL");
  EXPECT_EQ(error_of([] { parse(zip_of({part("a..b/...")})); }), "no error");
  ZipPart link = part();
  link.attributes = 0xa1ff0000;
  EXPECT_ERROR(parse(zip_of({link})), "'a' is a link");
}

}  // namespace
}  // namespace weft
