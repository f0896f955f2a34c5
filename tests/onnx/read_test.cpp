// Every way in which a model can lie gives a typed error that says what is wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/io/scratch_dir.h"
#include "tests/onnx/onnx_bytes.h"
#include "weft/onnx/value.h"
#include "weft/onnx/wire.h"

namespace weft::onnx {
namespace {

using namespace bytes;

Model parse(const std::string& file) { return parse_onnx(as_bytes(file), "m.onnx"); }
ConstantData first(const std::string& tensor) {
  static std::vector<std::string> kept;  // what arrays are views of
  kept.push_back(model_of(tensor));
  return parse(kept.back()).graph.initialisers.at(0);
}
template <class T>
std::vector<T> elements(const ConstantData& t) {
  const auto* data = reinterpret_cast<const char*>(t.array.bytes.data());
  std::vector<T> all(t.array.bytes.size() / sizeof(T));
  std::memcpy(all.data(), data, t.array.bytes.size());
  return all;
}

TEST(OnnxRead, RawAndTypedElementsAreTheSame) {
  const std::vector<float> x = {1.5f, -2, 3};
  const auto packed = std::string(reinterpret_cast<const char*>(x.data()), 12);
  EXPECT_EQ(elements<float>(first(tensor("w", {3}, 1, raw(x)))), x);
  EXPECT_EQ(elements<float>(first(tensor("w", {3}, 1, part(4, packed)))), x);
  EXPECT_EQ(elements<int8_t>(first(tensor("w", {2}, 3, number(5, -7) + number(5, 9)))),
            (std::vector<int8_t>{-7, 9}));
  EXPECT_EQ(elements<int64_t>(first(tensor("w", {2}, 7, part(7, varint(5) + varint(300))))),
            (std::vector<int64_t>{5, 300}));
  EXPECT_EQ(elements<uint64_t>(first(tensor("w", {}, 13, number(11, -1)))),
            (std::vector<uint64_t>{~uint64_t{0}}));
  EXPECT_EQ(first(tensor("w", {2}, 8, part(6, "a") + part(6, ""))).strings,
            (std::vector<std::string>{"a", ""}));
}

TEST(OnnxRead, RawElementsAreViewsOfTheFile) {
  const std::string file = model_of(tensor("w", {2}, 7, raw(std::vector<int64_t>{1, 2})));
  const Model m = parse(file);
  const auto* at = reinterpret_cast<const char*>(m.graph.initialisers[0].array.bytes.data());
  EXPECT_TRUE(at >= file.data() && at < file.data() + file.size());
}

TEST(OnnxRead, FewBitsAreUnpacked) {
  EXPECT_EQ(elements<int8_t>(first(tensor("w", {3}, 22, raw("\x9f\x07")))),
            (std::vector<int8_t>{-1, -7, 7}));
  EXPECT_EQ(elements<uint8_t>(first(tensor("w", {3}, 21, raw("\x9f\x07")))),
            (std::vector<uint8_t>{15, 9, 7}));
  EXPECT_EQ(elements<int8_t>(first(tensor("w", {4}, 26, raw("\xe4")))),
            (std::vector<int8_t>{0, 1, -2, -1}));
  EXPECT_EQ(elements<float>(first(tensor("w", {4}, 23, raw("\x21\xf6")))),
            (std::vector<float>{0.5f, 1, 4, -6}));
  EXPECT_EQ(elements<float>(first(tensor("w", {2}, 24, raw("\x7f\x81")))),
            (std::vector<float>{1, 4}));
}

TEST(OnnxRead, O06ElementsThatDoNotFitTheirShape) {
  EXPECT_ERROR(first(tensor("w", {3}, 1, raw("1234"))),
               "'w' has 4 bytes and its shape (3,) of float32 needs 12");
  EXPECT_ERROR(first(tensor("w", {3}, 1, "")), "'w' holds 0 bytes of elements");
  EXPECT_ERROR(first(tensor("w", {1}, 7, number(7, 1) + number(7, 2))),
               "'w' holds 16 bytes of elements and its shape (1,) of int64 needs 8");
  EXPECT_ERROR(first(tensor("w", {-1}, 1, "")), "'w' has the shape (-1,), which is none");
  EXPECT_ERROR(first(tensor("w", {1LL << 40, 1LL << 40}, 1, "")), "which is none");
  EXPECT_ERROR(first(tensor("w", {1LL << 40}, 7, number(7, 1))), "and only");
  EXPECT_ERROR(first(tensor("w", {1}, 3, number(5, 300))), "'w' has the element 300");
  EXPECT_ERROR(first(tensor("w", {2}, 8, part(6, "a"))), "'w' holds 1 strings and its shape");
  EXPECT_ERROR(first(tensor("w", std::vector<int64_t>(65, 1), 1, "")), "more than 64 axes");
}

TEST(OnnxRead, O06bLongNamesAreCut) {
  const std::string text =
      error_of([] { first(tensor(std::string(100000, 'x'), {3}, 1, raw("1234"))); });
  EXPECT_LT(text.size(), 400u);
  EXPECT_NE(text.find("xxx...'"), std::string::npos);
}

TEST(OnnxRead, O09ElementTypes) {
  EXPECT_ERROR(first(tensor("w", {1}, 0, raw("1"))), "'w' has elements of undefined");
  EXPECT_ERROR(first(tensor("w", {1}, 99, raw("1"))), "'w' has elements of type 99");
  EXPECT_ERROR(Value(first(tensor("w", {1}, 14, raw("12345678")))),
               "onnx.type: 'w' has elements of complex64, which weft does not compute with");
}

// ---- graphs

std::string abs_chain(const std::vector<std::string>& nodes) {
  return model(graph({nodes, {declared("x", {2})}, {declared("y", {2})}, {}}));
}

TEST(OnnxRead, NodesAreSorted) {
  const Model m = parse(abs_chain({node("Neg", {"a"}, {"y"}), node("Abs", {"x"}, {"a"})}));
  EXPECT_EQ(m.graph.nodes[0].op, "Abs");
  EXPECT_EQ(m.graph.nodes[1].op, "Neg");
}

TEST(OnnxRead, O09NamesThatAreWrong) {
  EXPECT_ERROR(parse(abs_chain({node("Abs", {"b"}, {"y"})})),
               "onnx.graph: m.onnx: the Abs node that makes 'y' reads 'b', which nothing makes");
  EXPECT_ERROR(parse(abs_chain({node("Abs", {"x"}, {"b"})})),
               "'y' is an output, and nothing makes it");
  EXPECT_ERROR(parse(abs_chain({node("Abs", {"y"}, {"b"}), node("Neg", {"b"}, {"y"})})),
               "the Abs node that makes 'b' waits for its own result: the graph has a cycle");
  EXPECT_ERROR(parse(abs_chain({node("Abs", {"x"}, {"y"}), node("Neg", {"x"}, {"y"})})),
               "'y' is made twice: by the Abs node that makes 'y' and by the Neg node");
  EXPECT_ERROR(parse(abs_chain({node("Abs", {"x"}, {"x"})})),
               "makes 'x', which is an input or a constant already");
  EXPECT_ERROR(parse(abs_chain({node("", {"x"}, {"y"})})), "does not say which operator it is");
  EXPECT_ERROR(parse(number(1, 9)), "there is no graph");
}

TEST(OnnxRead, NamesInsideGraphsAreFromAround) {
  const std::string inner = graph({{node("Abs", {"x"}, {"z"})}, {}, {declared("z", {2})}, {}});
  const auto m = [&](const char* condition) {
    return parse(
        abs_chain({node("If", {condition}, {"y"}, {graph_attribute("then_branch", inner)})}));
  };
  EXPECT_EQ(m("x").graph.nodes[0].attributes[0].graphs[0]->captures,
            (std::vector<std::string>{"x"}));
  EXPECT_ERROR(m("c"), "the If node that makes 'y' reads 'c'");
}

TEST(OnnxRead, OutputsMayBeFromAround) {
  const std::string inner = graph({{node("Abs", {"x"}, {"z"})},
                                   {},
                                   {declared("z", {2}), declared("w", {2}), declared("x", {2}),
                                    declared("v", {2}), declared("x", {2})},
                                   {}});
  const Model m =
      parse(abs_chain({node("Neg", {"x"}, {"w"}), node("Neg", {"x"}, {"v"}),
                       node("If", {"x"}, {"y"}, {graph_attribute("then_branch", inner)})}));
  EXPECT_EQ(m.graph.nodes[2].attributes[0].graphs[0]->captures,
            (std::vector<std::string>{"x", "w", "v"}));
}

TEST(OnnxRead, O10GraphsInsideGraphs) {
  std::string inner = graph({{node("Abs", {"x"}, {"z"})}, {}, {declared("z", {2})}, {}});
  for (int i = 0; i < 60; ++i)
    inner = graph({{node("If", {"x"}, {"z"}, {graph_attribute("then_branch", inner)})},
                   {},
                   {declared("z", {2})},
                   {}});
  EXPECT_ERROR(parse(model(inner)), "more than 100 messages inside one another");
}

TEST(OnnxRead, AttributesHoldWhatTheySay) {
  const auto with = [](const std::string& attribute) {
    return parse(abs_chain({node("Abs", {"x"}, {"y"}, {attribute})}));
  };
  EXPECT_ERROR(with(part(1, "t") + number(20, 4)), "the attribute 't' is of type 4 and holds none");
  EXPECT_ERROR(with(number(3, 1)), "an attribute without a name");
  EXPECT_EQ(with(part(1, "i") + number(3, 7)).graph.nodes[0].attributes[0].type,
            Attribute::Type::Int);  // as files before IR version 2
}

// ---- protocol buffers

TEST(OnnxWire, O13) {
  EXPECT_ERROR(parse(std::string("\x08") + std::string(10, '\xff') + "\x01"),
               "onnx.wire: m.onnx: byte 1: a number of more than 64 bits");
  EXPECT_ERROR(parse("\x08\xff"), "byte 1: the data end within a number");
  EXPECT_ERROR(parse("\x0b"), "field 1 is a group");
  EXPECT_ERROR(parse("\x0f"), "field 1 is of wire type 7");
  EXPECT_ERROR(parse(std::string("\x00\x01", 2)), "field number 0");
  EXPECT_ERROR(parse("\x3a\x05"
                     "abc"),
               "byte 2: 5 bytes are announced and 3 are left");
  EXPECT_ERROR(parse("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "bytes are announced and 0");
  EXPECT_ERROR(parse(part(2, "\xff\xfe")), "a name that is not UTF-8");
  EXPECT_ERROR(parse(part(1, "x")), "field 1 has wire type 2 where an integer is expected");
  EXPECT_ERROR(parse(number(7, 1)), "field 7 has wire type 0 where bytes is expected");
}

TEST(OnnxWire, UnknownFieldsAreSkipped) {
  std::string many;
  for (int i = 0; i < 100000; ++i) many += number(1000, i);
  const std::string plain = abs_chain({node("Abs", {"x"}, {"y"})});
  EXPECT_EQ(parse(many + plain + part(1001, "?") +
                  "\xc5\x3e"
                  "1234" +
                  "\xc1\x3e"
                  "12345678")
                .graph.nodes.size(),
            1u);
}

// ---- external data

class OnnxExternal : public ScratchDir {
 protected:
  std::string model_at(const std::string& place, const std::string& elements) {
    return write(place, model_of(tensor("w", {2}, 7, elements)));
  }
  std::string error_at(const std::string& elements) {
    const std::string path = model_at("m.onnx", elements);
    return error_of([&] { read_onnx(path); });
  }
};

TEST_F(OnnxExternal, IsMapped) {
  const std::vector<int64_t> x = {7, 1, 2};
  write("data.bin", {reinterpret_cast<const char*>(x.data()), 24});
  const Model m = read_onnx(model_at("m.onnx", external("data.bin", "8", "16")));
  EXPECT_EQ(elements<int64_t>(m.graph.initialisers[0]), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(elements<int64_t>(
                read_onnx(model_at("n.onnx", external("data.bin", "8"))).graph.initialisers[0]),
            (std::vector<int64_t>{1, 2}));
}

TEST_F(OnnxExternal, O01PathsThatLeadOut) {
  for (const char* location : {"../secret", "/etc/passwd", "a/../../b", "C:\\x", "\\\\host\\x", "",
                               ".", "a/.", "a//b", "a/"})
    EXPECT_NE(error_at(external(location)).find("must be inside of the model's own directory"),
              std::string::npos)
        << location << ": " << error_at(external(location));
  EXPECT_NE(error_at(external("none.bin")).find("'none.bin', which is not in"), std::string::npos);
  EXPECT_ERROR(parse(model_of(tensor("w", {2}, 7, external("data.bin")))),
               "a model given as bytes has no directory");
}

TEST_F(OnnxExternal, O02LinksThatLeadOut) {
  const std::string outside = write("outside.bin", std::string(16, '\0'));
  std::filesystem::create_directory(at("model"));
  std::filesystem::create_symlink(outside, at("model/data.bin"));
  std::filesystem::create_directory_symlink(dir_, at("model/up"));
  const std::string by_file = model_at("model/m.onnx", external("data.bin"));
  EXPECT_ERROR(read_onnx(by_file), "which is a link to");
  const std::string by_folder = model_at("model/n.onnx", external("up/outside.bin"));
  EXPECT_ERROR(read_onnx(by_folder), "outside of the model's directory");
}

TEST_F(OnnxExternal, LinksBesideTheModelsOwnFile) {
  // As caches lay models out: both names are links into one directory.
  std::filesystem::create_directories(at("blobs"));
  std::filesystem::create_directories(at("snapshot"));
  write("blobs/d", std::string(16, '\1'));
  model_at("blobs/m", external("data.bin"));
  std::filesystem::create_symlink("../blobs/m", at("snapshot/m.onnx"));
  std::filesystem::create_symlink("../blobs/d", at("snapshot/data.bin"));
  EXPECT_EQ(read_onnx(at("snapshot/m.onnx")).graph.initialisers.size(), 1u);
}

TEST_F(OnnxExternal, O03ExtentsThatLie) {
  write("data.bin", std::string(24, '\0'));
  for (const auto& [offset, length] :
       std::vector<std::pair<const char*, const char*>>{{"16", "16"},
                                                        {"25", ""},
                                                        {"-8", "16"},
                                                        {"18446744073709551608", "16"},
                                                        {"0", "9223372036854775808"},
                                                        {"0x8", "16"},
                                                        {"8 ", "16"}})
    EXPECT_NE(error_at(external("data.bin", offset, length)).find("the files do not belong"),
              std::string::npos)
        << offset << " " << length;
  EXPECT_NE(error_at(external("data.bin", "0", "8")).find("has 8 bytes and its shape (2,)"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::onnx
