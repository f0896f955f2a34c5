// Every row of the attack catalogue for safetensors gives a typed error that says what is wrong.
#include <gtest/gtest.h>

#include "tests/io/safetensors_bytes.h"
#include "tests/io/scratch_dir.h"
#include "weft/io/safetensors.h"

namespace weft {
namespace {

void parse(const std::string& file) { parse_safetensors(as_bytes(file), "m.st"); }

// One tensor "a" whose description is `fields`.
std::string one(std::string_view fields, size_t data_bytes = 4) {
  return safetensors_bytes("{\"a\":{" + std::string(fields) + "}}", data_bytes);
}
std::string one_u8(std::string_view shape, std::string_view offsets, size_t data_bytes = 4) {
  return one("\"dtype\":\"U8\",\"shape\":" + std::string(shape) +
                 ",\"data_offsets\":" + std::string(offsets),
             data_bytes);
}

TEST(SafetensorsAttack, S01HeaderLength) {
  EXPECT_ERROR(parse(""), "8 bytes wanted at offset 0");
  EXPECT_ERROR(parse("1234567"), "8 bytes wanted at offset 0, but only 7 of 7");
  EXPECT_ERROR(parse(safetensors_bytes("", 0)), "must begin with '{'");
  EXPECT_ERROR(parse(u64_bytes(7) + "{\"a\":{}}"), "safetensors.header: m.st");
  EXPECT_ERROR(parse(u64_bytes(50) + "{}"), "read.truncated: m.st: 50 bytes wanted at offset 8");
  EXPECT_ERROR(parse(u64_bytes(100'000'001) + "{}"),
               "header of 100000001 bytes; the format allows");
  EXPECT_ERROR(parse(u64_bytes(~uint64_t{0} - 7) + "{}"), "header of 18446744073709551608 bytes");
}

TEST(SafetensorsAttack, S02HeaderText) {
  EXPECT_ERROR(parse(safetensors_bytes("[]", 0)), "must begin with '{'");
  EXPECT_ERROR(parse(safetensors_bytes(" {}", 0)), "must begin with '{'");
  EXPECT_ERROR(parse(safetensors_bytes("\xef\xbb\xbf{}", 0)), "must begin with '{'");
  EXPECT_ERROR(parse(safetensors_bytes("{}\n", 0)), "only spaces may follow");
  EXPECT_ERROR(parse(safetensors_bytes("{}x", 0)), "only spaces may follow");
  EXPECT_ERROR(parse(safetensors_bytes("{}{}", 0)), "something after the end");
  EXPECT_ERROR(parse(safetensors_bytes("{\"\xff\":{}}", 0)), "not UTF-8 at offset 10");
  EXPECT_ERROR(parse(safetensors_bytes("{\"\xed\xa0\x80\":{}}", 0)), "not UTF-8");
  EXPECT_ERROR(parse(safetensors_bytes("{\"\xc0\x80\":{}}", 0)), "not UTF-8");
  EXPECT_ERROR(parse(safetensors_bytes("{\"\\ud800\":{}}", 0)), "lone surrogate");
  EXPECT_ERROR(parse(safetensors_bytes("{\"\\udc00x\":{}}", 0)), "lone surrogate");
  EXPECT_ERROR(parse(safetensors_bytes("{\"\\u0000\":{}}", 0)), "NUL character");
  EXPECT_ERROR(parse(safetensors_bytes(std::string("{\"\0\":{}}", 8), 0)), "control character");
  EXPECT_ERROR(parse(safetensors_bytes("{\"a\":{},}", 0)), "lacks dtype");
  EXPECT_ERROR(parse(safetensors_bytes("{\"__metadata__\":{},}", 0)), "expected a string");
}

TEST(SafetensorsAttack, S03DuplicateKey) {
  const std::string entry = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  EXPECT_ERROR(parse(safetensors_bytes("{" + entry + "," + entry + "}", 4)), "'a' is listed twice");
  EXPECT_ERROR(parse(one(R"("dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4])")),
               "a field listed twice");
  EXPECT_ERROR(parse(safetensors_bytes(R"({"__metadata__":{"k":"1","k":"2"}})", 0)),
               "key listed twice");
}

TEST(SafetensorsAttack, S04Offsets) {
  EXPECT_ERROR(parse(one_u8("[4]", "[4,0]")), "offsets 4 to 0");
  EXPECT_ERROR(parse(one_u8("[4]", "[-1,3]")), "non-negative integer below 2^64, not -1");
  EXPECT_ERROR(parse(one_u8("[4]", "[0.0,4]")), "non-negative integer below 2^64, not 0.0");
  EXPECT_ERROR(parse(one_u8("[4]", "[0,1e300]")), "not 1e300");
  EXPECT_ERROR(parse(one_u8("[4]", "[0,18446744073709551616]")), "not 18446744073709551616");
  EXPECT_ERROR(parse(one_u8("[4]", "[0,18446744073709551615]")), "0 to 18446744073709551615");
  EXPECT_ERROR(parse(one_u8("[4]", "[0]")), "without an end");
  EXPECT_ERROR(parse(one_u8("[4]", "[]")), "without a begin");
  EXPECT_ERROR(parse(one_u8("[4]", "[0,4,8]")), "more than two numbers");
  EXPECT_ERROR(parse(one_u8("[4]", "{\"0\":4}")), "expected an array");
  EXPECT_ERROR(parse(one_u8("[4]", "[00,4]")), "leading zero");
  EXPECT_ERROR(parse(one_u8("[4]", "[\"0\",4]")), "expected a number");
}

TEST(SafetensorsAttack, S05ShapeAndSize) {
  EXPECT_ERROR(parse(one_u8("[4294967296,4294967296]", "[0,4]")), "needs more than 2^63 bytes");
  EXPECT_ERROR(parse(one_u8("[9223372036854775807,2,0]", "[0,0]", 0)), "more than 2^63");
  EXPECT_ERROR(parse(one_u8("[9223372036854775808]", "[0,4]")), "dimension of 2^63 or more");
  EXPECT_ERROR(parse(one_u8("[3]", "[0,4]")), "(3,) u8 needs 3 bytes, but its offsets 0 to 4");
  EXPECT_ERROR(parse(one_u8("[5]", "[0,4]")), "(5,) u8 needs 5 bytes");
  EXPECT_ERROR(parse(one_u8("[-4]", "[0,4]")), "not -4");
  EXPECT_ERROR(parse(one_u8("4", "[0,4]")), "expected an array");
  std::string deep = "[1";
  for (int i = 0; i < 64; ++i) deep += ",1";
  EXPECT_ERROR(parse(one_u8(deep + "]", "[0,1]", 1)), "more than 64 dimensions");
}

std::string two(std::string_view a, std::string_view b, size_t data_bytes) {
  return safetensors_bytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(a) +
                               R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" +
                               std::string(b) + "}}",
                           data_bytes);
}

TEST(SafetensorsAttack, S06Layout) {
  EXPECT_ERROR(parse(two("[0,4]", "[2,6]", 6)), "'b' begins at data offset 2, but the arrays");
  EXPECT_ERROR(parse(two("[0,4]", "[0,4]", 4)), "they overlap");
  EXPECT_ERROR(parse(two("[0,4]", "[5,9]", 9)), "a hole");
  EXPECT_ERROR(parse(two("[1,5]", "[5,9]", 9)), "'a' begins at data offset 1");
  EXPECT_ERROR(parse(two("[0,4]", "[4,8]", 9)), "bytes follow its end");
  EXPECT_ERROR(parse(two("[0,4]", "[4,8]", 7)), "8 bytes of data, but 7 are there");
  EXPECT_EQ(error_of([] { parse(two("[4,8]", "[0,4]", 8)); }), "no error");
}

TEST(SafetensorsAttack, S07Dtype) {
  EXPECT_ERROR(parse(one(R"("dtype":"Q4","shape":[4],"data_offsets":[0,4])")),
               "has dtype 'Q4', which the format does not have");
  EXPECT_ERROR(parse(one(R"("dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4])")),
               "does not support yet");
  EXPECT_ERROR(parse(one(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])", 2)),
               "does not support yet");
  EXPECT_ERROR(parse(one(R"("dtype":"","shape":[4],"data_offsets":[0,4])")), "dtype ''");
  EXPECT_ERROR(parse(one(R"("dtype":3,"shape":[4],"data_offsets":[0,4])")), "expected a string");
  EXPECT_ERROR(parse(one(R"("dtype":"F32","shape":[],"data_offsets":[0,8])", 8)),
               "() f32 needs 4 bytes");
  EXPECT_ERROR(parse(one_u8("[0]", "[0,4]")), "(0,) u8 needs 0 bytes");
  EXPECT_ERROR(parse(one(R"("dtype":"U8","shape":[4])")), "lacks data_offsets");
  EXPECT_ERROR(parse(one(R"("dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1)")),
               "unknown field 'x'");
}

TEST(SafetensorsAttack, S07ZeroDimsAndZeroSizeAreLegal) {
  const std::string scalar = one(R"("dtype":"F32","shape":[],"data_offsets":[0,4])");
  EXPECT_EQ(parse_safetensors(as_bytes(scalar), "m").arrays[0].array.numel(), 1);
  const std::string none = one_u8("[3,0]", "[0,0]", 0);
  EXPECT_EQ(parse_safetensors(as_bytes(none), "m").arrays[0].array.numel(), 0);
}

TEST(SafetensorsAttack, S08JsonSize) {
  EXPECT_ERROR(parse(safetensors_bytes("{\"a\":" + std::string(1'000'000, '[') + "}", 0)),
               "expected an object");
  EXPECT_ERROR(parse(one("\"dtype\":" + std::string(1'000'000, '['))), "expected a string");
  EXPECT_ERROR(parse(safetensors_bytes("{\"" + std::string(5'000'000, 'k') + "\":{}}", 0)),
               "longer than 1 MiB");
  EXPECT_ERROR(parse(one_u8("[" + std::string(1'000'000, '1') + "]", "[0,4]")),
               "longer than 64 characters");
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i) {
    many += "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  }
  many.back() = '}';
  const std::string file = safetensors_bytes(many, 0);
  EXPECT_EQ(parse_safetensors(as_bytes(file), "m").arrays.size(), 100'000u);
}

TEST(SafetensorsAttack, S09Metadata) {
  EXPECT_ERROR(parse(safetensors_bytes(R"({"__metadata__":{"k":1}})", 0)), "not a string");
  EXPECT_ERROR(parse(safetensors_bytes(R"({"__metadata__":{"k":null}})", 0)), "not a string");
  EXPECT_ERROR(parse(safetensors_bytes(R"({"__metadata__":{"k":{"l":"m"}}})", 0)), "not a string");
  EXPECT_ERROR(parse(safetensors_bytes(R"({"__metadata__":[]})", 0)), "expected an object");
  EXPECT_ERROR(parse(safetensors_bytes(
                   "{\"__metadata__\":{\"k\":\"" + std::string(2'000'000, 'v') + "\"}}", 0)),
               "longer than 1 MiB");
}

TEST(SafetensorsAttack, NamesInErrorsCannotDriveTheTerminal) {
  const std::string text = error_of([] {
    parse(safetensors_bytes(R"({"\u001b[2J":{"dtype":"Q4","shape":[4],"data_offsets":[0,4]}})", 4));
  });
  EXPECT_NE(text.find("'?[2J' has dtype"), std::string::npos) << text;
}

class ShardedAttack : public ScratchDir {
 protected:
  void SetUp() override {
    ScratchDir::SetUp();
    write("one.safetensors", one_named("a"));
    write("two.safetensors", one_named("b"));
  }
  static std::string one_named(const std::string& name) {
    return safetensors_bytes("{\"" + name + R"(":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                             4);
  }
  std::string index(const std::string& weight_map) const {
    return write(
        "model.safetensors.index.json",
        R"({"metadata":{"total_size":8,"x":[[1],{"y":null}]},"weight_map":)" + weight_map + "}");
  }
  std::string error(const std::string& weight_map) const {
    const std::string path = index(weight_map);
    return error_of([&] { read_safetensors_model(path); });
  }
};

TEST_F(ShardedAttack, ReadsARightOne) {
  const std::string path = index(R"({"b":"two.safetensors","a":"one.safetensors"})");
  for (const std::string& from : {path, dir_}) {
    const SafetensorsContent model = read_safetensors_model(from);
    ASSERT_EQ(model.arrays.size(), 2u);
    EXPECT_EQ(model.arrays[0].name, "a");
    EXPECT_EQ(as_text(model.find("b")->bytes), "\x11\x11\x11\x11");
  }
}

TEST_F(ShardedAttack, S10PathsOutside) {
  for (const char* bad : {"../../etc/passwd", "/etc/passwd", "sub/x.safetensors", "..", ".", "",
                          "C:x.safetensors", "..\\\\x"}) {
    EXPECT_NE(error(std::string("{\"a\":\"") + bad + "\"}").find("must be a plain file name"),
              std::string::npos)
        << bad;
  }
}

TEST_F(ShardedAttack, S10Links) {
  std::filesystem::create_directory(at("outside"));
  std::filesystem::create_directory(at("model"));
  write("outside/x.safetensors", one_named("a"));
  std::filesystem::create_symlink("../outside/x.safetensors", at("model/one.safetensors"));
  const std::string path = write("model/m.index.json", R"({"weight_map":{"a":"one.safetensors"}})");
  EXPECT_ERROR(read_safetensors_model(path), "outside the model's directory");
  std::filesystem::create_symlink("one.safetensors", at("alias.safetensors"));
  EXPECT_NE(error(R"({"a":"one.safetensors","b":"alias.safetensors"})").find("the same file"),
            std::string::npos);
}

TEST_F(ShardedAttack, S10Contents) {
  EXPECT_NE(error(R"({"a":"one.safetensors","a":"two.safetensors"})").find("listed twice"),
            std::string::npos);
  EXPECT_NE(error(R"({"a":"one.safetensors","c":"one.safetensors"})").find("lacks 'c'"),
            std::string::npos);
  EXPECT_NE(error(R"({"a":"two.safetensors"})").find("holds 'b', which the index does not"),
            std::string::npos);
  EXPECT_NE(error(R"({"a":"three.safetensors"})").find("cannot open"), std::string::npos);
  EXPECT_NE(error(R"({"a":3})").find("expected a string"), std::string::npos);
  EXPECT_NE(error("{}}").find("something after"), std::string::npos);
  EXPECT_NE(error(R"({},"weight_map":{})").find("a second weight_map"), std::string::npos);
  EXPECT_ERROR(read_safetensors_model(write("e.index.json", "{}")), "has no weight_map");
  EXPECT_ERROR(read_safetensors_model(write("d.index.json", "{\"m\":" + std::string(99, '['))),
               "nesting deeper than 64");
}

}  // namespace
}  // namespace weft
