// `weft train` on images made here: its checkpoint, resuming, interruption.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <numbers>

#include "tests/app/command.h"
#include "tests/io/safetensors_bytes.h"
#include "weft/io/safetensors.h"

namespace weft {
namespace {

std::string big_endian(uint32_t x) {
  return {static_cast<char>(x >> 24), static_cast<char>(x >> 16), static_cast<char>(x >> 8),
          static_cast<char>(x)};
}

class TrainTest : public ScratchDir {
 protected:
  void SetUp() override {
    ScratchDir::SetUp();
    write_part("train", 48);
    write_part("t10k", 20);
  }
  // Class k has a bright row at 2 * k.
  void write_part(const std::string& part, uint32_t n) const {
    std::string images =
        std::string("\0\0\x08\x03", 4) + big_endian(n) + big_endian(28) + big_endian(28);
    std::string labels = std::string("\0\0\x08\x01", 4) + big_endian(n);
    for (uint32_t i = 0; i < n; ++i) {
      std::string image(28 * 28, '\x10');
      image.replace(i % 10 * 2 * 28, 28, 28, '\xf0');
      images += image;
      labels += static_cast<char>(i % 10);
    }
    write(part + "-images-idx3-ubyte", images);
    write(part + "-labels-idx1-ubyte", labels);
  }
  int train(std::vector<std::string> more, const char* batch = "16") const {
    std::vector<std::string> all = {"train", "fashion-mnist", "--json", "--data", dir_};
    all.insert(all.end(), {"--batch", batch});
    // A part of a training is then the same as the beginning of a whole one.
    if (std::ranges::find(more, "--schedule") == more.end())
      all.insert(all.end(), {"--schedule", "constant"});
    all.insert(all.end(), more.begin(), more.end());
    const CommandOutcome done = run_command(all);
    last_error_ = done.text();
    return done.code;
  }
  int64_t files_of(const std::string& start) const {
    return std::ranges::count_if(std::filesystem::directory_iterator(dir_), [&](const auto& entry) {
      return entry.path().filename().string().starts_with(start);
    });
  }
  mutable std::string last_error_;
};

TEST_F(TrainTest, BadDataSaysWhatIsWrong) {
  write("train-labels-idx1-ubyte", std::string("\0\0\x08\x01", 4) + big_endian(3) + "abc");
  EXPECT_EQ(train({}), kExitFailure);
  EXPECT_NE(last_error_.find("there are 48 images, so labels must be u8 (48,)"), std::string::npos)
      << last_error_;
  write_part("train", 48);
  EXPECT_EQ(train({}, "100"), kExitFailure);
  EXPECT_NE(last_error_.find("a batch of 100 is more than the 48"), std::string::npos)
      << last_error_;
  EXPECT_EQ(train({"--accumulate", "3"}), kExitFailure);
  EXPECT_NE(last_error_.find("a batch of 16 cannot be cut into 3 equal micro-batches"),
            std::string::npos)
      << last_error_;
  EXPECT_EQ(train({"--resume", "--save", at("none")}), kExitFailure);
  EXPECT_NE(last_error_.find("file.missing"), std::string::npos) << last_error_;
}

TEST_F(TrainTest, BadCheckpointsSayWhatIsWrong) {
  const auto error_with = [&](const std::string& checkpoint) {
    write("m", checkpoint);
    EXPECT_EQ(train({"--resume", "--save", at("m")}), kExitFailure);
    EXPECT_EQ(content(at("m")), checkpoint);
    return last_error_;
  };
  EXPECT_NE(error_with("").find("is empty"), std::string::npos) << last_error_;
  EXPECT_NE(error_with("junk").find("8 bytes wanted"), std::string::npos) << last_error_;
  EXPECT_NE(error_with(safetensors_bytes("{}", 0)).find("not a checkpoint of `weft train`"),
            std::string::npos)
      << last_error_;
  const std::string place =
      R"({"__metadata__":{"batch":"16","images":"48","seed":"1","step":"3"}})";
  EXPECT_NE(error_with(safetensors_bytes(place, 0)).find("'conv1.weight' is missing"),
            std::string::npos)
      << last_error_;
}

TEST_F(TrainTest, OutputsAreCheckedBeforeTraining) {
  EXPECT_EQ(train({"--save", at("no/such/m")}), kExitFailure);
  EXPECT_NE(last_error_.find("cannot write --save"), std::string::npos) << last_error_;
  EXPECT_EQ(train({"--plot", at("no/such/p.svg")}), kExitFailure);
  EXPECT_NE(last_error_.find("cannot write --plot"), std::string::npos) << last_error_;
  write("file", "content");
  EXPECT_EQ(train({"--tensorboard", at("file/runs")}), kExitFailure);
  EXPECT_NE(last_error_.find(at("file")), std::string::npos) << last_error_;
}

TEST_F(TrainTest, ADeviceThatRunsNothingIsRefused) {
  for (const char* device : {"NULL", "null:c", "NULL:INTERP"}) {
    EXPECT_EQ(train({"--epochs", "1", "--device", device, "--save", at("m")}), kExitFailure);
    EXPECT_NE(last_error_.find("takes kernels and runs none: nothing would be learnt and every "
                               "number would be meaningless; use --device CPU"),
              std::string::npos)
        << last_error_;
    EXPECT_FALSE(std::filesystem::exists(at("m")));
  }
}

TEST_F(TrainTest, SlowResumedTrainingIsBitEqual) {
  ASSERT_EQ(train({"--epochs", "2", "--save", at("whole"), "--plot", at("plot.svg"),
                   "--tensorboard", at("runs")}),
            kExitOk)
      << last_error_;
  for (const auto& file : std::filesystem::directory_iterator(at("runs")))
    for (const char* tag : {"train/loss", "train/learning_rate", "test/accuracy"})
      EXPECT_NE(content(file.path()).find(tag), std::string::npos) << tag;
  ASSERT_EQ(train({"--epochs", "1", "--save", at("parts")}), kExitOk);
  ASSERT_EQ(train({"--epochs", "2", "--save", at("parts"), "--resume"}), kExitOk) << last_error_;
  EXPECT_TRUE(content(at("whole")) == content(at("parts")));  // too long to print
  EXPECT_NE(content(at("plot.svg")).find("test accuracy"), std::string::npos);
  EXPECT_EQ(train({"--save", at("parts"), "--resume"}, "8"), kExitFailure);
  EXPECT_NE(last_error_.find("batch = 16, this run has 8"), std::string::npos) << last_error_;
}

// Batch norm sees micro-batches, so the loss is near the whole batch's, not equal to it.
TEST_F(TrainTest, SlowBatchesAreComputedInMicroBatches) {
  const auto first_loss = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--epochs", "1", "--save", at("m")});
    EXPECT_EQ(train(more), kExitOk) << last_error_;
    const SafetensorsContent saved = read_safetensors(at("m"));
    float loss = 0;
    std::memcpy(&loss, saved.find("history.loss")->bytes.data(), sizeof loss);
    return loss;
  };
  const float whole = first_loss({}), parts = first_loss({"--accumulate", "2"});
  EXPECT_NEAR(parts, whole, 0.2 * whole);
  EXPECT_NE(parts, whole);
}

TEST_F(TrainTest, TheLearningRateFallsAlongACosine) {
  const auto last_lr = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--save", at("m"), "--lr", "0.01"});
    EXPECT_EQ(train(more), kExitOk) << last_error_;
    const SafetensorsContent saved = read_safetensors(at("m"));
    float lr = 0;
    std::memcpy(&lr, saved.find("optimizer.lr")->bytes.data(), sizeof lr);
    return lr;
  };
  EXPECT_FLOAT_EQ(last_lr({"--epochs", "1"}), 0.01F);
  // A matter of the step alone: the last of two epochs of three steps, the first of which were
  // those above.
  const double at_last = 0.01 * (1 + std::cos(std::numbers::pi * 5 / 6)) / 2;
  EXPECT_FLOAT_EQ(last_lr({"--epochs", "2", "--resume", "--schedule", "cosine"}),
                  static_cast<float>(at_last));
}

TEST_F(TrainTest, SlowInterruptedTrainingSavesAndCanGoOn) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);  // whatever started us may have it ignored
    ::_exit(train({"--epochs", "1000", "--save", at("m")}));
  }
  while (!std::filesystem::exists(at("m"))) ::usleep(20000);  // the first epoch is over
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kExitInterrupted);
  EXPECT_NE(read_safetensors(at("m")).find("model.head.weight"), nullptr);
}

TEST_F(TrainTest, SlowAFullDiskKeepsTheOldCheckpoint) {
  ASSERT_EQ(train({"--epochs", "1", "--save", at("m")}), kExitOk) << last_error_;
  const std::string before = content(at("m"));
  const pid_t child = ::fork();
  if (child == 0) {  // a limit on the size of files stands in for a full disk
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {before.size() / 2, before.size() / 2};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const int code = train({"--epochs", "2", "--save", at("m"), "--resume"});
    const bool said = last_error_.find("[file] cannot write " + at("m")) != std::string::npos;
    ::_exit(code == kExitFailure && said ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(content(at("m")) == before);
  EXPECT_EQ(files_of("m"), 1) << "no half-written file is left";
  ASSERT_EQ(train({"--epochs", "2", "--save", at("m"), "--resume"}), kExitOk) << last_error_;
}

TEST_F(TrainTest, SlowKilledTrainingsGoOnToTheSameBits) {
  constexpr int64_t kStepsPerEpoch = 3;
  ASSERT_EQ(train({"--epochs", "1", "--save", at("m")}), kExitOk) << last_error_;
  const auto step = [&] { return std::stoll(read_safetensors(at("m")).metadata.at("step")); };
  for (int kill = 0; kill < 12; ++kill) {
    const int64_t reached = step();
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(train({"--epochs", "100000", "--save", at("m"), "--resume"}));
    }
    // Not before it has saved once more, so that there is progress; then at any moment.
    while (step() == reached) {
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "it ended by itself";
      ::usleep(1000);
    }
    ::usleep(static_cast<useconds_t>(kill * 1700));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  const std::string epochs = std::to_string(step() / kStepsPerEpoch + 1);
  ASSERT_EQ(train({"--epochs", epochs, "--save", at("m"), "--resume"}), kExitOk) << last_error_;
  ASSERT_EQ(train({"--epochs", epochs, "--save", at("whole")}), kExitOk) << last_error_;
  EXPECT_TRUE(content(at("whole")) == content(at("m")));  // too long to print
}

}  // namespace
}  // namespace weft
