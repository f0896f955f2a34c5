#include "weft/io/pictures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "tests/io/scratch_dir.h"
#include "tests/source_dir.h"
#include "weft/base/context.h"
#include "weft/base/shared_library.h"
#include "weft/io/jpeg.h"
#include "weft/io/picture_folder.h"
#include "weft/io/png.h"
#include "weft/tensor/image.h"

namespace weft {
namespace {

std::string corpus(const std::string& name) {
  return std::string(source_dir()) + "/tests/fuzz/corpus/" + name;
}

HostArray picture_of(const std::vector<int>& values, int64_t height, int64_t width,
                     int64_t channels, DType dtype = DType::U8) {
  std::vector<std::byte> bytes;
  for (const int v : values) {
    bytes.push_back(static_cast<std::byte>(v));
    if (dtype == DType::U16) bytes.push_back(static_cast<std::byte>(v >> 8));
  }
  return HostArray::owned(dtype, {height, width, channels}, std::move(bytes));
}

std::vector<int> elements(const HostArray& p) {
  std::vector<int> all;
  const size_t size = p.dtype == DType::U8 ? 1 : 2;
  for (size_t i = 0; i < p.bytes.size(); i += size) {
    const int high = size == 2 ? std::to_integer<int>(p.bytes[i + 1]) << 8 : 0;
    all.push_back(std::to_integer<int>(p.bytes[i]) + high);
  }
  return all;
}

/// What jpeg_corpus.py paints.
std::vector<int> painted(int64_t x, int64_t y) {
  return {static_cast<int>(x * 10), static_cast<int>(y * 14),
          static_cast<int>(128 + x * 2 - y * 3)};
}

// ---- JPEG

class JpegTest : public ScratchDir {
 protected:
  void SetUp() override {
    ScratchDir::SetUp();
    if (!has_jpeg_library()) GTEST_SKIP() << "no libturbojpeg.so.0 here (Debian: libturbojpeg0)";
  }
};

TEST_F(JpegTest, ReadsColourGreyAndProgressive) {
  for (const char* name : {"rgb", "rgb_420", "progressive"}) {
    const HostArray p = read_jpeg(corpus("jpeg/") + name);
    ASSERT_EQ(p.shape, (std::vector<int64_t>{17, 24, 3})) << name;
    const std::vector<int> found = elements(p);
    for (int64_t y = 0; y < 17; ++y)
      for (int64_t x = 0; x < 24; ++x)
        for (size_t c = 0; c < 3; ++c)
          ASSERT_NEAR(found[static_cast<size_t>(y * 24 + x) * 3 + c], painted(x, y)[c], 12)
              << name << " " << x << ", " << y << ", " << c;
  }
  const HostArray grey = read_jpeg(corpus("jpeg/grey"));
  ASSERT_EQ(grey.shape, (std::vector<int64_t>{17, 24, 1}));
  const std::vector<int> c = painted(10, 5);
  EXPECT_NEAR(elements(grey)[5 * 24 + 10], 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2], 4);
}

TEST_F(JpegTest, RefusesWhatIsDamaged) {
  const std::string whole = content(corpus("jpeg/rgb"));
  const auto parse = [](const std::string& file) { parse_jpeg(as_bytes(file), "f.jpg"); };
  EXPECT_ERROR(parse("\xff\xd8\xffno"), "f.jpg: ");
  EXPECT_ERROR(parse(whole.substr(0, whole.size() * 2 / 3)), "f.jpg: ");  // cut short
  EXPECT_ERROR(parse(whole.substr(0, 100)), "f.jpg: ");
  EXPECT_ERROR(parse(content(corpus("jpeg/cmyk"))), "CMYK");
  // The frame header (FF C0, length, 8 bits, height, width) that claims 60000 x 60000.
  std::string huge = whole;
  const size_t frame = huge.find(std::string("\xff\xc0\x00\x11\x08", 5));
  ASSERT_NE(frame, std::string::npos);
  huge.replace(frame + 5, 4, "\xea\x60\xea\x60");
  EXPECT_ERROR(parse(huge), "cannot hold 60000 by 60000 pixels");
}

TEST(SharedLibraries, SayWhyTheyAreNotThere) {
  const SharedLibrary none{"libweft_no_such_thing.so.7"};
  EXPECT_FALSE(none.loaded());
  EXPECT_NE(none.missing().find("libweft_no_such_thing.so.7"), std::string::npos);
  EXPECT_EQ(none.function<int()>("f"), nullptr);
  const SharedLibrary second{"libweft_no_such_thing.so.7", "libc.so.6"};
  EXPECT_TRUE(second.loaded());
  EXPECT_NE(second.function<int()>("getpid"), nullptr);
  EXPECT_EQ(second.function<int()>("no_such_function"), nullptr);
}

// ---- of any format

class Pictures : public ScratchDir {};

TEST_F(Pictures, AreToldByTheirFirstBytes) {
  EXPECT_EQ(read_picture(corpus("png/rgb8")).shape, read_png(corpus("png/rgb8")).shape);
  if (has_jpeg_library()) {
    EXPECT_EQ(read_picture(corpus("jpeg/grey")).shape[2], 1);
  }
  EXPECT_ERROR(parse_picture(as_bytes("GIF89a"), "f.gif"), "begins as no picture does; PNG, JPEG");
  EXPECT_ERROR(parse_picture({}, "f"), "begins as no picture");
}

TEST_F(Pictures, ChannelsOfEveryKind) {
  const auto convert = [](const std::vector<int>& pixel, Channels to, DType dtype = DType::U8) {
    const auto n = static_cast<int64_t>(pixel.size());
    return elements(with_channels(picture_of(pixel, 1, 1, n, dtype), to));
  };
  using V = std::vector<int>;
  EXPECT_EQ(convert({7}, Channels::Rgb), (V{7, 7, 7}));
  EXPECT_EQ(convert({7, 9}, Channels::Rgb), (V{7, 7, 7}));
  EXPECT_EQ(convert({7, 9}, Channels::Rgba), (V{7, 7, 7, 9}));
  EXPECT_EQ(convert({1, 2, 3}, Channels::Rgba), (V{1, 2, 3, 255}));
  EXPECT_EQ(convert({1, 2, 3, 4}, Channels::Rgb), (V{1, 2, 3}));
  EXPECT_EQ(convert({100, 200, 50}, Channels::Grey), V{153});  // 29.9 + 117.4 + 5.7
  EXPECT_EQ(convert({255, 255, 255, 0}, Channels::Grey), V{255});
  EXPECT_EQ(convert({1, 2, 3, 4}, Channels::AsItIs), (V{1, 2, 3, 4}));
  EXPECT_EQ(convert({0x1234}, Channels::Rgba, DType::U16), (V{0x1234, 0x1234, 0x1234, 0xffff}));
  EXPECT_EQ(elements(with_8_bits(picture_of({0x1234, 0xff00}, 1, 2, 1, DType::U16))),
            (V{0x12, 0xff}));
  EXPECT_ERROR(with_8_bits(HostArray::owned(DType::F32, {0}, {})), "got f32 of shape (0,)");
}

TEST_F(Pictures, ResizedAsTensorsAre) {
  Options options;
  options.dev = "CPU:INTERP";
  Context context(options);
  const ContextScope scope(context);
  const HostArray p = read_png(corpus("png/rgb8"));
  for (const auto& [height, width] : {std::pair{3, 4}, {14, 10}, {1, 1}, {7, 5}, {20, 3}}) {
    const HostArray small = resized(p, height, width);
    ASSERT_EQ(small.shape, (std::vector<int64_t>{height, width, 3}));
    const Tensor x = tensor_of(p).cast(DType::F64).permute({2, 0, 1}).unsqueeze(0);
    const auto expected = interpolate(x, {height, width}, Resize::Linear)
                              .squeeze(0)
                              .permute({1, 2, 0})
                              .to_vector<double>();
    const std::vector<int> found = elements(small);
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 0.5 + 1e-6) << height << " x " << width << ", " << i;
  }
  EXPECT_ERROR(resized(p, 0, 5), "cannot be 0 by 5 pixels");
  EXPECT_ERROR(resized(p, int64_t{1} << 40, int64_t{1} << 40), "more than memory can hold");
}

// ---- folders

class PictureFolders : public ScratchDir {
 protected:
  void add(const std::string& to, const std::string& from) {
    std::filesystem::create_directories(std::filesystem::path(at(to)).parent_path());
    write(to, content(corpus(from)));
  }
};

TEST_F(PictureFolders, FoldersAreClasses) {
  add("b_dog/2.png", "png/rgb8");
  add("b_dog/1.PNG", "png/grey8");
  add("a_cat/x.png", "png/rgb16");
  add("b_dog/readme.txt", "png/rgb8");
  std::filesystem::create_directory(at("c_empty"));
  std::filesystem::create_symlink(at("nowhere"), at("b_dog/link.png"));
  const PictureFolder set(dir_, {.height = 4, .width = 6});
  EXPECT_EQ(set.classes(), (std::vector<std::string>{"a_cat", "b_dog", "c_empty"}));
  ASSERT_EQ(set.size(), 3);
  EXPECT_EQ(set.path(1), at("b_dog/1.PNG"));
  EXPECT_EQ(set.label(0), 0);
  EXPECT_EQ(set.label(2), 1);
  const auto arrays = set.fetch({2, 0});
  EXPECT_EQ(arrays[0].shape, (std::vector<int64_t>{2, 3, 4, 6}));
  EXPECT_EQ(arrays[1].shape, (std::vector<int64_t>{2}));
  // Planes of what was read.
  const std::vector<int> expected = elements(resized(read_png(at("b_dog/2.png")), 4, 6));
  const std::vector<int> found = elements(arrays[0]);
  for (size_t i = 0; i < 24; ++i)
    for (size_t c = 0; c < 3; ++c) ASSERT_EQ(found[c * 24 + i], expected[i * 3 + c]);
  EXPECT_ERROR(set.label(3), "there is no picture 3");
}

TEST_F(PictureFolders, BatchesAreFetchedAhead) {
  for (int i = 0; i < 7; ++i) add(strformat("{}/p{}.png", i % 2, i), "png/rgb8");
  Context context;
  const ContextScope scope(context);
  DataLoader loader = PictureFolder(dir_).loader({.batch = 3, .shuffle = true, .seed = 2});
  EXPECT_EQ(loader.batches(), 3);
  int64_t rows = 0, ones = 0;
  for (const Batch& batch : loader.epoch(0)) {
    EXPECT_EQ(batch[0].dtype(), DType::U8);
    EXPECT_EQ(batch[0].shape()[1], 3);
    rows += batch[1].size(0);
    ones += batch[1].sum().item<int64_t>();
  }
  EXPECT_EQ(rows, 7);
  EXPECT_EQ(ones, 3);
}

TEST_F(PictureFolders, RefusesWhatIsNoDataSet) {
  EXPECT_ERROR(PictureFolder{dir_}, "0 classes with no picture");
  EXPECT_ERROR(PictureFolder{at("nowhere")}, "cannot be listed");
  add("a/small.png", "png/rgb8");
  add("a/smaller.png", "png/rgb16");
  EXPECT_ERROR((PictureFolder{dir_, {.height = 5}}), "5 by 0");
  EXPECT_ERROR((PictureFolder{dir_, {.channels = Channels::AsItIs}}), "say which");
  EXPECT_ERROR((PictureFolder{dir_}.fetch({0, 1})), "smaller.png: is 6 by 2 pixels, others 7 by 5");
  write("a/zz.jpg", "not a picture");
  EXPECT_ERROR((PictureFolder{dir_}.fetch({2})), "zz.jpg: begins as no picture does");
  Context context;
  const ContextScope scope(context);
  DataLoader loader = PictureFolder(dir_).loader({.batch = 3});
  auto epoch = loader.epoch(0);
  EXPECT_ERROR(epoch.next(), "png: is");  // from the thread that fetched it
}

}  // namespace
}  // namespace weft
