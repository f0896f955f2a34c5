#include "weft/io/cifar.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"

namespace weft {
namespace {

// A record whose image is this byte throughout, but for its last one.
std::string record(std::vector<int> labels, char pixel) {
  std::string text;
  for (const int label : labels) text += static_cast<char>(label);
  return text + std::string(3071, pixel) + '!';
}

class CifarTest : public ScratchDir {};

TEST_F(CifarTest, SplitsRecordsIntoArrays) {
  const std::string file = record({7}, 'a') + record({9}, 'b');
  const CifarSet set = parse_cifar(as_bytes(file), Cifar::Ten, "f");
  EXPECT_EQ(set.images.shape, (std::vector<int64_t>{2, 3, 32, 32}));
  EXPECT_EQ(set.images.dtype, DType::U8);
  EXPECT_EQ(as_text(set.images.bytes), record({}, 'a') + record({}, 'b'));
  EXPECT_EQ(set.labels.shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(as_text(set.labels.bytes), "\x07\x09");
  EXPECT_TRUE(set.coarse_labels.bytes.empty());
}

TEST_F(CifarTest, HundredHasTwoLabels) {
  const std::string file = record({19, 99}, 'a') + record({3, 4}, 'b');
  const CifarSet set = parse_cifar(as_bytes(file), Cifar::Hundred, "f");
  EXPECT_EQ(as_text(set.images.bytes), record({}, 'a') + record({}, 'b'));
  EXPECT_EQ(as_text(set.labels.bytes), "\x63\x04");
  EXPECT_EQ(as_text(set.coarse_labels.bytes), "\x13\x03");
}

TEST_F(CifarTest, ReadsTheFilesOfADirectory) {
  for (int i = 1; i <= 5; ++i) {
    write("data_batch_" + std::to_string(i) + ".bin", record({i}, 'x'));
  }
  write("test_batch.bin", record({9}, 'x'));
  write("train.bin", record({1, 2}, 'x'));
  EXPECT_EQ(as_text(read_cifar(dir_, Cifar::Ten, true).labels.bytes), "\1\2\3\4\5");
  EXPECT_EQ(as_text(read_cifar(dir_, Cifar::Ten, false).labels.bytes), "\x09");
  EXPECT_EQ(as_text(read_cifar(dir_, Cifar::Hundred, true).labels.bytes), "\2");
  EXPECT_ERROR(read_cifar(dir_, Cifar::Hundred, false), "test.bin");
}

TEST_F(CifarTest, RefusesWhatIsNotCifar) {
  const auto parse = [](const std::string& file, Cifar kind) {
    parse_cifar(as_bytes(file), kind, "f.bin");
  };
  EXPECT_ERROR(parse("", Cifar::Ten), "f.bin: 0 bytes are no whole number of records of 1 label");
  EXPECT_ERROR(parse(record({1}, 'x').substr(1), Cifar::Ten), "3072 bytes are no whole number");
  EXPECT_ERROR(parse(record({1}, 'x'), Cifar::Hundred), "of 2 label bytes and 3072 of image");
  EXPECT_ERROR(parse(record({1}, 'x') + record({10}, 'x'), Cifar::Ten),
               "the label at offset 3073 is 10; there are 10 classes");
  EXPECT_ERROR(parse(record({20, 0}, 'x'), Cifar::Hundred), "offset 0 is 20; there are 20");
  EXPECT_ERROR(parse(record({0, 100}, 'x'), Cifar::Hundred), "offset 1 is 100; there are 100");
}

}  // namespace
}  // namespace weft
