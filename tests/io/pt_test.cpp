// PyTorch's files: written and read back, and the rows P01 to P05 and P09 of the attack catalogue.
// tests/python/test_files.py compares with PyTorch itself.
#include "weft/io/pt.h"

#include <gtest/gtest.h>

#include "tests/io/archive_bytes.h"

namespace weft {
namespace {

const std::string kProto = "\x80\x02";

std::string zipped(const std::string& pickle, const std::string& data = "0123456789abcdef") {
  return zip_of({{"archive/data.pkl", pickle}, {"archive/data/0", data}});
}
PtContent parse(const std::string& pickle) {
  // Names would not outlive the bytes, arrays do not here.
  return parse_pt(as_bytes(zipped(kProto + pickle)), "m.pt");
}
void check(const std::string& pickle) { parse(pickle); }

std::string text(const std::string& s) { return "X" + little(s.size(), 4) + s; }
std::string number(int64_t v) { return "\x8a\x08" + little(static_cast<uint64_t>(v), 8); }
std::string numbers(const std::vector<int64_t>& values) {
  std::string all = "(";
  for (const int64_t v : values) all += number(v);
  return all + "t";
}

struct Saved {
  std::vector<int64_t> shape{4}, strides{1};
  int64_t offset = 0, count = 4;
  std::string storage = "FloatStorage", key = "0", function = "torch._utils\n_rebuild_tensor_v2";
};
std::string saved(const Saved& s) {
  return "c" + s.function + "\n((" + text("storage") + "ctorch\n" + s.storage + "\n" + text(s.key) +
         text("cpu") + number(s.count) + "tQ" + number(s.offset) + numbers(s.shape) +
         numbers(s.strides) + "\x89NtR";
}
template <class F>
std::string error(F&& change) {
  Saved s;
  change(s);
  return error_of([&] { check(saved(s) + "."); });
}
#define EXPECT_WRONG(change, part)                                         \
  EXPECT_NE(error([](Saved& s) { change; }).find(part), std::string::npos) \
      << error([](Saved& s) { change; })

class PtTest : public ScratchDir {};

TEST_F(PtTest, RoundTripsEveryDtype) {
  std::vector<NamedArray> arrays;
  for (const DTypeRow& row : kDTypes) {
    if (!is_data(row.dtype) || row.bits < 8) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(6 * row.bits / 8), std::byte{1});
    arrays.push_back({std::string(row.name), HostArray::owned(row.dtype, {2, 3}, bytes)});
  }
  arrays.push_back({"scalar", HostArray::owned(DType::F32, {}, std::vector<std::byte>(4))});
  arrays.push_back({"none", HostArray::owned(DType::F32, {0, 3}, {})});
  save_pt(at("m.pt"), arrays);
  const PtContent back = read_pt(at("m.pt"));
  ASSERT_EQ(back.arrays.size(), arrays.size());
  EXPECT_TRUE(back.foreign.empty());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const HostArray &a = arrays[i].array, &b = back.arrays[i].array;
    EXPECT_EQ(back.arrays[i].name, arrays[i].name);
    EXPECT_EQ(b.dtype, a.dtype);
    EXPECT_EQ(b.shape, a.shape);
    EXPECT_EQ(as_text(b.bytes), as_text(a.bytes));
    EXPECT_TRUE(b.bytes.empty() || reinterpret_cast<uintptr_t>(b.bytes.data()) % 64 == 0);
  }
  EXPECT_ERROR(save_pt(at("m.pt"), {arrays[0], arrays[0]}), "two tensors are named");
  EXPECT_ERROR(save_pt(at("m.pt"), {{"\xff", arrays[0].array}}), "is not UTF-8");
}

TEST_F(PtTest, NamesAreWays) {
  const std::string t = saved({});
  const std::string file = zipped(kProto + "}(" + text("model") + "}(" + text("w") + t + "u" +
                                  text("list") + "](" + t + "K\x05" + t + "eK\x07" + t + "u.");
  const PtContent content = parse_pt(as_bytes(file), "m.pt");
  std::vector<std::string> names;
  for (const NamedArray& named : content.arrays) names.push_back(named.name);
  EXPECT_EQ(names, (std::vector<std::string>{"model.w", "list.0", "list.2", "7"}));
  EXPECT_EQ(as_text(content.find("model.w")->bytes), "0123456789abcdef");
  EXPECT_EQ(content.find("model"), nullptr);
}

TEST_F(PtTest, ViewsAndCopies) {
  const auto bytes = [](const Saved& s) {
    const std::string file = zipped(kProto + saved(s) + ".");
    const PtContent content = parse_pt(as_bytes(file), "m.pt");
    return std::string(as_text(content.tensors.begin()->second.bytes));
  };
  EXPECT_EQ(bytes({{2, 2}, {2, 1}}), "0123456789abcdef");
  EXPECT_EQ(bytes({{2, 2}, {1, 2}}), "012389ab4567cdef");
  EXPECT_EQ(bytes({{2}, {1}, 1}), "456789ab");
  EXPECT_EQ(bytes({{2}, {2}, 1}), "4567cdef");
  EXPECT_EQ(bytes({{3}, {0}, 3}), "cdefcdefcdef");
  EXPECT_EQ(bytes({{0, int64_t{1} << 40}, {1, 1}}), "");
}

// P01: whatever a pickle names, nothing is looked up, made or called.
TEST_F(PtTest, P01NothingIsCalled) {
  const std::string trap = at("trap"), touch = text("touch " + trap);
  for (const std::string& pickle :
       {"cos\nsystem\n(" + touch + "tR.", "cposix\nsystem\n" + touch + "\x85R.",
        text("os") + text("system") + "\x93" + touch + "\x85R.",
        "cos\nsystem\n" + touch + "\x85\x81.",
        "cos\nsystem\n)\x81}" + text("__setstate__") + "cos\nsystem\nsb.",
        "cbuiltins\neval\n" + touch + "\x85R.",
        "cpkgutil\nresolve_name\n" + text("os:system") + "\x85R" + touch + "\x85R."}) {
    const PtContent content = parse(pickle);
    EXPECT_TRUE(content.arrays.empty());
    EXPECT_FALSE(content.foreign.empty());
  }
  EXPECT_EQ(parse("cos\nsystem\n(" + touch + "tR.").foreign.at(0), "os system");
  EXPECT_FALSE(std::filesystem::exists(trap));
  // Codes that data is not pickled with.
  for (const char* code : {"(S'x'\nios\nsystem\n.", "(cos\nsystem\no.", "\x82\x01.", "Ppid\n.",
                           "cos\nsystem\n)}\x92.", "I1\n.", "Vx\n.", "\x97."})
    EXPECT_ERROR(check(code), "which tensors do not need") << code;
  EXPECT_ERROR(check("K\x01K\x02\x85R."), "calls what is no function");
  EXPECT_ERROR(check("cos\nsystem\nK\x01R."), "other than a tuple");
  EXPECT_ERROR(check("K\x01}b."), "sets attributes of what has none");
}

TEST_F(PtTest, P02TensorsStayInsideOfTheirStorage) {
  EXPECT_EQ(error([](Saved&) {}), "no error");
  EXPECT_WRONG(s.shape = {5}, "outside of its storage of 4");
  EXPECT_WRONG(s.offset = 1, "outside of its storage");
  EXPECT_WRONG(s.offset = -1, "outside of its storage");
  EXPECT_WRONG((s.shape = {2}, s.strides = {-1}), "outside of its storage");
  EXPECT_WRONG((s.shape = {2}, s.strides = {int64_t{1} << 62}), "outside of its storage");
  EXPECT_WRONG((s.shape = {int64_t{1} << 62}, s.strides = {4}), "a tensor of shape (46116860");
  EXPECT_WRONG((s.shape = {1}, s.offset = INT64_MAX), "outside of its storage");
  EXPECT_WRONG((s.shape = {-1}), "a tensor of shape (-1,)");
  EXPECT_WRONG((s.shape = {int64_t{1} << 40, int64_t{1} << 40}, s.strides = {0, 0}), "of shape");
  EXPECT_WRONG((s.shape = {int64_t{1} << 40}, s.strides = {0}), "pt.size");
  EXPECT_WRONG((s.strides = {1, 1}), "1 sizes and 2 strides");
  EXPECT_WRONG(s.count = 3, "of 3 f32 has 16 bytes");
  EXPECT_WRONG(s.count = -1, "a storage of -1");
  EXPECT_WRONG(s.count = int64_t{1} << 62, "has 16 bytes");
  EXPECT_WRONG(s.key = "7", "has no storage '7'");
  EXPECT_WRONG(s.key = "../0", "has no storage '../0'");
  EXPECT_WRONG(s.storage = "NoStorage", "a storage 'torch NoStorage'");
  EXPECT_WRONG(s.storage = "ComplexFloatStorage", "which weft does not have");
  EXPECT_WRONG(s.function = "torch._utils\n_rebuild_tensor_v3", "lacks argument 6");
  EXPECT_ERROR(check("ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x01))tR."), "without a storage");
  EXPECT_ERROR(check("ctorch._utils\n_rebuild_tensor_v2\n)R."), "lacks argument 0");
  EXPECT_ERROR(check("ctorch._utils\n_rebuild_parameter\nN\x85R."), "no tensor");
  EXPECT_ERROR(check("]K\x01K\x02s."), "adds members to what has none");
  EXPECT_ERROR(check("N(K\x01K\x02u."), "adds members to what has none");
  EXPECT_ERROR(check("}(K\x01u."), "a key without a value");
  const std::string repeated = "}(K\x01" + saved({}) + "K\x01" + saved({}) + "u.";
  EXPECT_ERROR(check(repeated), "two tensors are '1'");
}

TEST_F(PtTest, P03OldFormats) {
  const std::string tar = tar_of({{"storages", "x"}});
  EXPECT_ERROR(parse_pt(as_bytes(tar), "m.pt"), "tar file of PyTorch before 0.1.10");
  // Pickles one after the other: the same rules.
  const std::string magic = kProto + "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  const auto old = [&](const std::string& object, const std::string& keys,
                       const std::string& data) {
    return magic + kProto + "M\xe9\x03." + kProto + "}." + kProto + object + "." + kProto + keys +
           "." + data;
  };
  const std::string one = "](" + text("0") + "e", data = little(4, 8) + "0123456789abcdef";
  const std::string good = old(saved({}), one, data);
  const PtContent content = parse_pt(as_bytes(good), "m.pt");
  EXPECT_EQ(as_text(content.tensors.begin()->second.bytes), "0123456789abcdef");
  const auto refused = [&](const std::string& file) {
    return error_of([&] { parse_pt(as_bytes(file), "m.pt"); });
  };
  EXPECT_NE(refused(old(saved({}), one, little(~0ull, 8))).find("read.truncated"),
            std::string::npos);
  EXPECT_NE(refused(old(saved({}), one, little(5, 8))).find("read.truncated"), std::string::npos);
  EXPECT_NE(refused(old(saved({}), "]", "")).find("has no storage '0'"), std::string::npos);
  EXPECT_NE(refused(old("N", one, data)).find("belongs to nothing"), std::string::npos);
  EXPECT_NE(refused(kProto + "K\x05.").find("not of torch.save"), std::string::npos);
  EXPECT_NE(refused(kProto + "cos\nsystem\n(tR.").find("not of torch.save"), std::string::npos);
}

TEST_F(PtTest, P04StackMemoAndLengths) {
  EXPECT_ERROR(check("0."), "takes a value from an empty stack");
  EXPECT_ERROR(check("(0N(1t."), "there is none");
  EXPECT_ERROR(check("t."), "there is none");
  EXPECT_ERROR(check("N(a."), "empty stack");
  EXPECT_ERROR(check("j\xff\xff\xff\xff."), "takes 4294967295 from its memo");
  EXPECT_EQ(error_of([] { check("Nr\xff\xff\xff\xff."); }), "no error");  // one place, not 2^32
  EXPECT_ERROR(check("\x95" + little(~0ull, 8) + "N."), "a frame of 18446744073709551615 bytes");
  EXPECT_ERROR(check("\x8b\xff\xff\xff\x7f."), "an integer of 2147483647 bytes");
  EXPECT_ERROR(check("\x8e" + little(1ull << 62, 8)), "read.truncated");
  EXPECT_ERROR(check("X\xff\xff\xff\xff"), "read.truncated");
  EXPECT_ERROR(check("N"), "read.truncated");
  EXPECT_ERROR(check("NN."), "2 values and 0 marks");
  EXPECT_ERROR(check("(N."), "1 values and 1 marks");
  EXPECT_ERROR(check("\x80\x01N."), "protocol 1");
  EXPECT_ERROR(check("X" + little(1, 4) + "\xff."), "not UTF-8");
  EXPECT_ERROR(check(std::string(1'000'000, ']') + "."), "values and 0 marks");
  EXPECT_ERROR(check(std::string(1000, ']') + std::string(999, 'a') + "."),
               "nested deeper than 64");
  EXPECT_ERROR(check("]q\x01h\x01"
                     "a."),
               "nested deeper than 64");  // a list in itself
  // Lists of lists of the same list: few bytes, 2^100 ways.
  std::string laughs = "]q\x01";
  for (int i = 0; i < 40; ++i)
    laughs += "](h" + std::string(1, char(i + 1)) + "h" + std::string(1, char(i + 1)) + "eq" +
              std::string(1, char(i + 2));
  EXPECT_ERROR(check("(" + laughs + "t."), "has more members than");
  EXPECT_ERROR(check("c" + std::string(5000, 'm') + "\nn\n."), "a name of more than 256");
  EXPECT_ERROR(check("cno line"), "a name without an end");
}

TEST_F(PtTest, P05NothingBesideTheOnePickle) {
  EXPECT_ERROR(check("N.cos\nsystem\n)R."), "something follows the end of its pickle");
  const std::string pickle = kProto + "N.";
  const std::string two = zip_of({{"a/data.pkl", pickle}, {"b/data.pkl", pickle}});
  EXPECT_ERROR(parse_pt(as_bytes(two), "m.pt"), "more than one data.pkl");
  const std::string none = zip_of({{"a/x", pickle}});
  EXPECT_ERROR(parse_pt(as_bytes(none), "m.pt"), "without data.pkl");
  const std::string big = zip_of({{"a/data.pkl", pickle}, {"a/byteorder", "big"}});
  EXPECT_ERROR(parse_pt(as_bytes(big), "m.pt"), "byte order of another machine: 'big'");
}

// P09: what it is called says nothing.
TEST_F(PtTest, P09ByWhatItIs) {
  EXPECT_ERROR(read_pt(write("m.pt", "7z\xbc\xaf\x27\x1c----------------")), "neither a zip");
  EXPECT_ERROR(read_pt(write("m.pt", "GGUF" + std::string(40, '\0'))), "neither a zip archive");
  EXPECT_EQ(read_pt(write("m.gguf", zipped(kProto + saved({}) + "."))).tensors.size(), 1u);
}

}  // namespace
}  // namespace weft
