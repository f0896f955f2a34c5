// GGUF files: round trips, split models, and every row of the attack catalogue as a typed error.
#include "weft/io/gguf.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/io/gguf_bytes.h"
#include "tests/io/scratch_dir.h"

namespace weft {
namespace {

void parse(const std::string& file) { parse_gguf(as_bytes(file), "m.gguf"); }

class GgufTest : public ScratchDir {};

GgufContent sample() {
  static const std::vector<std::byte> blocks(2 * 36, std::byte{7});
  static const float numbers[] = {1, 2, 3, 4, 5, 6};
  GgufContent content;
  const std::vector<std::string> tokens = {"<s>", "", "wort"};
  const int32_t types[] = {3, 1, -1};
  content.metadata = {{"general.architecture", GgufValue::of("llama")},
                      {"a.u8", GgufValue::of_number<uint8_t>(200)},
                      {"a.i16", GgufValue::of_number<int16_t>(-3)},
                      {"a.f32", GgufValue::of_number(0.5f)},
                      {"a.f64", GgufValue::of_number(0.25)},
                      {"a.bool", GgufValue::of_number(true)},
                      {"a.u64", GgufValue::of_number<uint64_t>(~uint64_t{0})},
                      {"tokens", GgufValue::of_texts(tokens)},
                      {"types", GgufValue::of_numbers(std::span<const int32_t>(types))}};
  content.tensors = {{"w", Codec::Q4_0, {2, 64}, blocks, nullptr},
                     {"b", Codec::F32, {2, 3}, std::as_bytes(std::span(numbers)), nullptr}};
  return content;
}

void expect_sample(const GgufContent& back) {
  EXPECT_EQ(back.version, 3u);
  EXPECT_EQ(back.value("general.architecture")->text(), "llama");
  EXPECT_EQ(back.value("a.u8")->integer(), 200);
  EXPECT_EQ(back.value("a.i16")->integer(), -3);
  EXPECT_EQ(back.value("a.f32")->number(), 0.5);
  EXPECT_EQ(back.value("a.f64")->number(), 0.25);
  EXPECT_EQ(back.value("a.bool")->shown(), "true");
  EXPECT_EQ(back.value("a.u64")->integer(), std::nullopt);
  EXPECT_EQ(back.value("tokens")->texts, (std::vector<std::string_view>{"<s>", "", "wort"}));
  EXPECT_EQ(back.value("types")->integer(2), -1);
  EXPECT_EQ(back.value("types")->integer(3), std::nullopt);
  EXPECT_EQ(back.value("none"), nullptr);
  ASSERT_EQ(back.tensors.size(), 2u);
  EXPECT_EQ(back.find("w")->shape, (std::vector<int64_t>{2, 64}));
  EXPECT_EQ(back.find("w")->codec, Codec::Q4_0);
  EXPECT_EQ(as_text(back.find("b")->bytes), as_text(sample().tensors[1].bytes));
  EXPECT_EQ(back.find("x"), nullptr);
}

TEST_F(GgufTest, RoundTrips) {
  for (const uint32_t alignment : {32u, 8u, 1u, 4096u}) {
    GgufContent content = sample();
    content.alignment = alignment;
    save_gguf(at("m.gguf"), content);
    const GgufContent back = read_gguf(at("m.gguf"));
    expect_sample(back);
    EXPECT_EQ(back.alignment, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(back.tensors[1].bytes.data()) % alignment, 0u);
    EXPECT_EQ(gguf_bytes(back), gguf_bytes(content));
    EXPECT_EQ(as_bytes(ScratchDir::content(at("m.gguf"))).size(), gguf_bytes(content).size());
  }
}

TEST_F(GgufTest, Version2AndNestedArrays) {
  GgufFile file(2);
  file.pairs = 1;
  file.header += text_bytes("deep") + u32_bytes(9) + u32_bytes(9) + u64_bytes(2);  // 2 arrays
  file.header += u32_bytes(0) + u64_bytes(2) + "\x05\x06";
  file.header += u32_bytes(8) + u64_bytes(1) + text_bytes("x");
  const std::string bytes = file.bytes();
  const GgufContent content = parse_gguf(as_bytes(bytes), "m.gguf");
  EXPECT_EQ(content.version, 2u);
  const GgufValue& deep = *content.value("deep");
  ASSERT_EQ(deep.values.size(), 2u);
  EXPECT_EQ(deep.values[0].integer(1), 6);
  EXPECT_EQ(deep.values[1].texts[0], "x");
  EXPECT_EQ(deep.shown(), "[2 values, 1 values]");
  const std::vector<std::byte> again = gguf_bytes(content);
  EXPECT_EQ(parse_gguf(again, "again").value("deep")->values[0].integer(0), 5);
}

TEST_F(GgufTest, AttackG01G02Counts) {
  for (const uint64_t count : {uint64_t{1} << 63, ~uint64_t{0}, (uint64_t{1} << 32) + 1}) {
    GgufFile keys(3), tensors(3);
    keys.pairs = tensors.tensors = count;
    EXPECT_ERROR(parse(keys.bytes()), "gguf.header: m.gguf: promises");
    EXPECT_ERROR(parse(keys.bytes()), "metadata pairs, and at most 65536 are read");
    EXPECT_ERROR(parse(tensors.bytes()), "tensors, and at most 131072 are read");
  }
  GgufFile few(3);
  few.pairs = 60000;
  EXPECT_ERROR(parse(few.bytes()), "60000 items of at least 14 bytes promised");
}

TEST_F(GgufTest, AttackG03StringLengths) {
  for (const uint64_t size : {~uint64_t{0}, uint64_t{1} << 30, uint64_t{40}}) {
    EXPECT_ERROR(parse(one_pair("k", 8, u64_bytes(size))), "bytes wanted at offset");
    EXPECT_ERROR(parse(one_pair("k", 9, u32_bytes(8) + u64_bytes(1) + u64_bytes(size))),
                 "bytes wanted at offset");
  }
  GgufFile name(3);
  name.pairs = 1;
  name.header = u64_bytes(~uint64_t{0}) + std::string(20, 'k');
  EXPECT_ERROR(parse(name.bytes()),
               "a key of 18446744073709551615 bytes at offset 24; they have 1 to 65535");
}

TEST_F(GgufTest, AttackG04Arrays) {
  for (const uint32_t element : {0u, 4u, 12u, 8u}) {
    for (const uint64_t count :
         {uint64_t{1} << 63, uint64_t{1} << 61, ~uint64_t{0}, uint64_t{1000}}) {
      EXPECT_ERROR(parse(one_pair("k", 9, u32_bytes(element) + u64_bytes(count))),
                   strformat("{} items of at least", count));
    }
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += u32_bytes(9) + u64_bytes(1);
  EXPECT_ERROR(parse(one_pair("k", 9, deep)), "arrays in arrays at offset 85, more than 4 deep");
  EXPECT_ERROR(parse(one_pair("k", 9, u32_bytes(9) + u64_bytes(4097))),
               "promises 4097 arrays in an array, and at most 4096");
  EXPECT_ERROR(parse(one_pair("k", 13, "ab")),
               "type 13 of a value at offset 33; there are 0 to 12");
  EXPECT_ERROR(parse(one_pair("k", 7, "\x02")), "a bool at offset 37 is neither 0 nor 1");
}

TEST_F(GgufTest, AttackG05Dimensions) {
  EXPECT_EQ(error_of([] { parse(one_tensor({}, 0, 0, 4)); }), "no error");  // one number
  for (const uint32_t dims : {5u, 9u, ~0u}) {
    GgufFile file(3);
    file.tensors = 1;
    file.header = text_bytes("t") + u32_bytes(dims) + std::string(80, '\0');
    EXPECT_ERROR(parse(file.bytes()),
                 strformat("gguf.shape: m.gguf: 't' has {} axes, and at most 4", dims));
  }
}

TEST_F(GgufTest, AttackG06Sizes) {
  EXPECT_EQ(error_of([] { parse(one_tensor({0, 3}, 0, 0, 0)); }), "no error");  // nothing
  EXPECT_ERROR(parse(one_tensor({~uint64_t{0}}, 0, 0, 4)), "has an axis of 18446744073709551615");
  const uint64_t large = (uint64_t{1} << 42) + 1;
  EXPECT_ERROR(parse(one_tensor({large, large}, 0, 0, 4)), "or larger than 2^63");
  EXPECT_ERROR(parse(one_tensor({uint64_t{1} << 61, 2, 0}, 0, 0, 4)), "or larger than 2^63");
  EXPECT_ERROR(parse(one_tensor({uint64_t{1} << 40, 1 << 10}, 2, 0, 4)),
               "takes 633318697598976 bytes");
}

TEST_F(GgufTest, AttackG07Types) {
  for (const int type : {255, 4, 5, 31, -1})
    EXPECT_ERROR(parse(one_tensor({32}, static_cast<uint32_t>(type), 0, 64)),
                 strformat("gguf.type: m.gguf: 't' has the ggml type {}, which is unknown", type));
}

TEST_F(GgufTest, AttackG08Blocks) {
  EXPECT_ERROR(parse(one_tensor({48, 2}, 2, 0, 64)),
               "gguf.shape: m.gguf: 't' of shape (2, 48) is not whole blocks of 32 Q4_0 elements");
  EXPECT_ERROR(parse(one_tensor({}, 12, 0, 64)), "of shape () is not whole blocks of 256 Q4_K");
}

TEST_F(GgufTest, AttackG09Offsets) {
  EXPECT_ERROR(parse(one_tensor({8}, 0, 64, 32)),
               "'t' takes 32 bytes at data offset 64, but the data has 32; the file is cut short");
  EXPECT_ERROR(parse(one_tensor({8}, 0, ~uint64_t{31}, 32)), "at data offset 18446744073709551584");
  EXPECT_ERROR(parse(one_tensor({8}, 0, 4, 64)),
               "'t' begins at 4, no multiple of the alignment 32");
  EXPECT_ERROR(parse(one_tensor({8}, 0, 0, 31)),
               "takes 32 bytes at data offset 0, but the data has 31");
}

TEST_F(GgufTest, AttackG10Overlaps) {
  const auto two = [](uint64_t first, uint64_t second) {
    GgufFile file(3);
    file.tensors = 2;
    file.header = tensor_bytes("a", {16}, 0, first) + tensor_bytes("b", {16}, 0, second);
    file.data = std::string(256, 'd');
    return file.bytes();
  };
  EXPECT_ERROR(parse(two(0, 0)),
               "gguf.offset: m.gguf: 'b' begins at data offset 0, before 'a' ends at 64");
  EXPECT_ERROR(parse(two(32, 0)), "'a' begins at data offset 32, before 'b' ends at 64");
  EXPECT_EQ(error_of([&] { parse(two(64, 0)); }), "no error");   // another order
  EXPECT_EQ(error_of([&] { parse(two(0, 128)); }), "no error");  // a hole
}

TEST_F(GgufTest, AttackG11Alignment) {
  for (const uint32_t alignment : {0u, 3u, 48u}) {
    EXPECT_ERROR(parse(one_pair("general.alignment", 4, u32_bytes(alignment))),
                 strformat("general.alignment is u32 {}, not a power of two", alignment));
  }
  EXPECT_ERROR(parse(one_pair("general.alignment", 10, u64_bytes(uint64_t{1} << 63))), "is u64 ");
  EXPECT_ERROR(parse(one_pair("general.alignment", 8, text_bytes("32"))), "is string '32'");
  GgufFile far(3);
  far.pairs = far.tensors = 1;
  far.header = text_bytes("general.alignment") + u32_bytes(4) + u32_bytes(1u << 31) +
               tensor_bytes("t", {8}, 0, 0);
  far.data = std::string(32, 'd');
  EXPECT_ERROR(parse(far.bytes()), "takes 32 bytes at data offset 0, but the data has 0");
}

TEST_F(GgufTest, AttackG12Names) {
  GgufFile keys(3);
  keys.pairs = 2;
  keys.header = text_bytes("k") + u32_bytes(0) + "a" + text_bytes("k") + u32_bytes(0) + "a";
  EXPECT_ERROR(parse(keys.bytes()),
               "gguf.name: m.gguf: a key 'k' is there twice, again at offset 38");
  GgufFile names(3);
  names.tensors = 2;
  names.header = tensor_bytes("t", {8}, 0, 0) + tensor_bytes("t", {8}, 0, 32);
  names.data = std::string(64, 'd');
  EXPECT_ERROR(parse(names.bytes()), "a tensor's name 't' is there twice");
  EXPECT_ERROR(parse(one_pair("", 0, "abc")), "a key of 0 bytes");
  EXPECT_ERROR(parse(one_pair(std::string("a\0b", 3), 0, "a")),
               "a key with a NUL in it at offset 24: 'a?b'");
  EXPECT_ERROR(parse(one_pair(std::string(1000000, 'k'), 0, "a")), "a key of 1000000 bytes");
}

TEST_F(GgufTest, AttackG13MetadataOfOtherTypes) {
  // What a key means is its reader's matter: it asks for a number and is told that there is none.
  const std::string text = one_pair("n", 8, text_bytes("12")),
                    nan = one_pair("n", 6, u32_bytes(0x7fc00000));
  EXPECT_EQ(parse_gguf(as_bytes(text), "m").value("n")->integer(), std::nullopt);
  EXPECT_EQ(parse_gguf(as_bytes(text), "m").value("missing"), nullptr);
  EXPECT_EQ(parse_gguf(as_bytes(nan), "m").value("n")->integer(), std::nullopt);
  const std::string few = one_pair("scores", 9, u32_bytes(6) + u64_bytes(1) + u32_bytes(0));  // G15
  EXPECT_EQ(parse_gguf(as_bytes(few), "m").value("scores")->number(1), std::nullopt);
}

TEST_F(GgufTest, AttackG16Headers) {
  for (const uint32_t version : {0u, 1u, 4u, 99u})
    EXPECT_ERROR(parse("GGUF" + u32_bytes(version) + std::string(16, '\0')),
                 strformat("is version {}, and weft reads versions 2 and 3", version));
  EXPECT_ERROR(parse("GGUF" + u32_bytes(0x03000000) + std::string(16, '\0')), "is big-endian");
  for (const char* start : {"", "G", "GGU", "GGJT", "PK\x03\x04"})
    EXPECT_ERROR(parse(start), "gguf.header: m.gguf: does not begin with 'GGUF'");
  EXPECT_ERROR(parse("GGUF"), "4 bytes wanted at offset 4");
  EXPECT_ERROR(read_gguf(write("empty", "")), "empty");
  EXPECT_ERROR(read_gguf(dir_), "directory");
  EXPECT_ERROR(read_gguf("/dev/zero"), "file.");
  EXPECT_ERROR(read_gguf(at("none")), "file.missing");
}

// ---- G17: split models

GgufContent part(uint16_t number, uint16_t count, const std::string& tensor) {
  static const std::vector<std::byte> data(4);
  GgufContent content;
  content.metadata = {{"split.no", GgufValue::of_number(number)},
                      {"split.count", GgufValue::of_number(count)},
                      {"split.tensors.count", GgufValue::of_number<int32_t>(count)}};
  content.tensors = {{tensor, Codec::F32, {1}, data, nullptr}};
  return content;
}

TEST_F(GgufTest, SplitModels) {
  for (uint16_t i = 0; i < 3; ++i)
    save_gguf(at(strformat("m-{:05}-of-00003.gguf", i + 1)), part(i, 3, strformat("t{}", i)));
  const GgufContent model = read_gguf(at("m-00001-of-00003.gguf"));
  ASSERT_EQ(model.tensors.size(), 3u);
  EXPECT_EQ(model.tensors[2].name, "t2");
  EXPECT_ERROR(read_gguf(at("m-00002-of-00003.gguf")), "gguf.split");

  save_gguf(at("m-00003-of-00003.gguf"), part(2, 3, "t0"));
  EXPECT_ERROR(read_gguf(at("m-00001-of-00003.gguf")), "'t0' is in two parts");
  save_gguf(at("m-00003-of-00003.gguf"), part(1, 3, "t2"));
  EXPECT_ERROR(read_gguf(at("m-00001-of-00003.gguf")),
               "says it is part 2 of 3, and part 3 of 3 is wanted");
  std::filesystem::remove(at("m-00003-of-00003.gguf"));
  EXPECT_ERROR(read_gguf(at("m-00001-of-00003.gguf")), "m-00003-of-00003.gguf");
  const std::string away = at("away");
  std::filesystem::create_directory(away);
  save_gguf(away + "/x", part(2, 3, "t2"));
  std::filesystem::create_symlink(away + "/x", at("m-00003-of-00003.gguf"));
  EXPECT_ERROR(read_gguf(at("m-00001-of-00003.gguf")), "is a link into");
}

TEST_F(GgufTest, AttackG17SplitCounts) {
  GgufContent content = part(0, 2, "t");
  content.metadata[1].second = GgufValue::of_number<uint32_t>(1u << 31);
  save_gguf(at("m-00001-of-00002.gguf"), content);
  EXPECT_ERROR(read_gguf(at("m-00001-of-00002.gguf")), "is one of 2147483648 parts");
  content.metadata[1].second = GgufValue::of("../../2");
  save_gguf(at("m-00001-of-00002.gguf"), content);
  EXPECT_ERROR(read_gguf(at("m-00001-of-00002.gguf")), "is one of -1 parts");
  // No name comes out of a file: other parts are named as the first one is.
  save_gguf(at("other.gguf"), part(0, 2, "t"));
  EXPECT_ERROR(read_gguf(at("other.gguf")), "whose name must end in -00001-of-00002.gguf");
}

TEST_F(GgufTest, AttackG18EveryTruncation) {
  const std::vector<std::byte> whole = gguf_bytes(sample());
  const size_t needed = whole.size() - 8;  // padding follows the last tensor
  for (size_t size = 0; size < needed; ++size)
    EXPECT_NE(error_of([&] { parse_gguf(std::span(whole).first(size), "m"); }), "no error") << size;
  expect_sample(parse_gguf(std::span(whole).first(needed), "m"));
}

TEST_F(GgufTest, SaveErrors) {
  const auto saved = [&](auto change) {
    GgufContent content = sample();
    change(content);
    gguf_bytes(content);
  };
  EXPECT_ERROR(saved([](GgufContent& c) { c.tensors[1].name = "w"; }),
               "save_gguf.name: 'w' is there twice");
  EXPECT_ERROR(saved([](GgufContent& c) { c.tensors[1].name = ""; }), "names have 1 to 65535");
  EXPECT_ERROR(saved([](GgufContent& c) { c.tensors[0].shape = {2, 32}; }),
               "save_gguf.shape: 'w' has 72 bytes, which Q4_0 (2, 32) does not take");
  EXPECT_ERROR(saved([](GgufContent& c) { c.tensors[1].shape = {1, 1, 1, 2, 3}; }),
               "at most 4 axes");
  EXPECT_ERROR(saved([](GgufContent& c) { c.alignment = 24; }),
               "save_gguf.alignment: an alignment of 24");
  EXPECT_ERROR(saved([](GgufContent& c) { c.metadata[7].second.count = 9; }),
               "save_gguf.value: 'tokens' has 3 values for a count of 9");
}

}  // namespace
}  // namespace weft
