// Texts for training: which files, which tokens, which order.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/io/scratch_dir.h"
#include "weft/base/context.h"
#include "weft/io/gzip.h"
#include "weft/llm/training_texts.h"

namespace weft::llm {
namespace {

class TrainingTexts : public ScratchDir {
 protected:
  void SetUp() override {
    ScratchDir::SetUp();
    std::filesystem::create_directories(at("d/sub"));
  }
  std::vector<std::string> names(const std::vector<std::string>& paths) {
    std::vector<std::string> all;
    for (const TextFile& f : find_texts(paths)) all.push_back(f.name);
    return all;
  }
  std::vector<int32_t> tokens(const std::string& path, TokenFile::Part part) {
    const TokenFile file(path, 300);
    std::vector<int32_t> all(static_cast<size_t>(file.size(part)));
    file.read(part, 0, all);
    return all;
  }
};

const auto kNothing = [](size_t, size_t) {};

TEST_F(TrainingTexts, AreFoundInFoldersByTheirNames) {
  write("d/a.txt", "a");
  write("d/sub/b.md", "b");
  write("d/sub/c.rst.gz", as_text(gzip(as_bytes("c"))));
  write("d/picture.png", "no text");
  std::filesystem::create_symlink("a.txt", at("d/link.txt"));
  std::vector<std::string> found = names({at("d")});
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"a.txt", "sub/b.md", "sub/c.rst.gz"}));
  EXPECT_EQ(names({at("d/picture.png")}), std::vector<std::string>{"picture.png"});
  const std::vector<std::string> before = names({at("d")});
  std::filesystem::rename(at("d"), at("e"));
  EXPECT_EQ(names({at("e")}), before) << "where the folder lies does not matter";
  EXPECT_ERROR(find_texts({at("none")}), "train.data: there is no file or folder '" + at("none"));
  std::filesystem::create_directory(at("empty"));
  EXPECT_ERROR(find_texts({at("empty")}), "there is no text in '" + at("empty") + "': files that");
  EXPECT_ERROR(find_texts({}), "there is no text in nothing");
}

TEST_F(TrainingTexts, AreInflatedAndMustBeUtf8) {
  const auto read = [&](const std::string& name, std::string_view content, bool asked) {
    return read_text({write(name, content), name, asked});
  };
  EXPECT_EQ(read("a.txt.gz", as_text(gzip(as_bytes("some text"))), true), "some text");
  EXPECT_EQ(read("bad.txt", "caf\xe9", false), std::nullopt);
  EXPECT_EQ(read("empty.txt", "", false), std::nullopt);
  EXPECT_ERROR(read("bad.txt", "caf\xe9", true), "bad.txt' is not UTF-8; convert it");
  EXPECT_ERROR(read("nul.txt", std::string_view("a\0b", 3), true), "has bytes of 0");
  EXPECT_ERROR(read("empty.txt", "", true), "is empty");
  EXPECT_ERROR(read("cut.txt.gz", as_text(gzip(as_bytes("some text"))).substr(0, 12), true),
               "gzip");
}

TEST_F(TrainingTexts, BecomeTheSameTokensWithAnyNumberOfThreads) {
  for (int i = 0; i < 70; ++i)
    write("d/" + std::to_string(i) + ".txt", "the text of number " + std::to_string(i));
  write("d/bad.txt", "\xff");
  const std::vector<TextFile> files = find_texts({at("d")});
  const std::string json = learn_tokenizer(files, 280, kNothing);
  const auto tokenizer = text::Tokenizer::from_json(json);
  std::vector<std::string> made;
  for (const int threads : {1, 3}) {
    Options options;
    options.threads = threads;
    Context context(options);
    const ContextScope scope(context);
    const TokenCounts counts = write_tokens(at("tokens"), files, tokenizer, 0, 0.25, kNothing);
    EXPECT_EQ(counts.files, 70);
    EXPECT_EQ(counts.left_out, 1);
    EXPECT_EQ(counts.validation, (counts.training + counts.validation) / 4);
    made.push_back(content(at("tokens")));
  }
  EXPECT_TRUE(made[0] == made[1]);
  std::vector<int32_t> all = tokens(at("tokens"), TokenFile::Part::Training);
  const std::vector<int32_t> rest = tokens(at("tokens"), TokenFile::Part::Validation);
  all.insert(all.end(), rest.begin(), rest.end());
  std::string text;
  for (const TextFile& f : files) text += read_text(f).value_or("");
  EXPECT_EQ(tokenizer.decode(all), text);
  EXPECT_EQ(std::ranges::count(all, 0), 70) << "an end behind each";
}

TEST_F(TrainingTexts, TokensOfAnotherVocabularyAreRefused) {
  const std::vector<TextFile> files = find_texts({write("a.txt", "some words and more words")});
  const std::string json = learn_tokenizer(files, 300, kNothing);
  write_tokens(at("tokens"), files, text::Tokenizer::from_json(json), {}, 0.1, kNothing);
  const TokenFile small(at("tokens"), 5);
  std::vector<int32_t> out(3);
  EXPECT_ERROR(small.read(TokenFile::Part::Training, 0, out), "is none of the vocabulary's 5");
  EXPECT_ERROR(TokenFile(write("junk", "junk"), 5), "read.truncated");
  save_safetensors(at("other"), {});
  EXPECT_ERROR(TokenFile(at("other"), 5), "its tokens 'training' are not there");
  write("bad.txt", "\xff");
  EXPECT_ERROR(write_tokens(at("t"), std::vector<TextFile>{{at("bad.txt"), "bad.txt"}},
                            text::Tokenizer::from_json(json), {}, 0.1, kNothing),
               "none of 1 files is a text in UTF-8");
}

TEST(WindowOrders, HaveEveryWindowOnceInAnEpoch) {
  WindowOrder order(1000, 10, 7), again(1000, 10, 7), other(1000, 10, 8);
  ASSERT_EQ(order.per_epoch(), 99);
  std::vector<int64_t> first;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> starts;
    for (int64_t i = 0; i < 99; ++i) {
      const int64_t start = order.start(epoch * 99 + i);
      EXPECT_LE(start + 11, 1000);
      starts.insert(start / 10);
      EXPECT_EQ(start % 10, order.start(epoch * 99) % 10);
      if (epoch == 0) first.push_back(start);
    }
    EXPECT_EQ(starts.size(), 99U);
  }
  EXPECT_EQ(again.start(98), first[98]) << "any sample may be asked for";
  EXPECT_EQ(order.start(0), first[0]) << "of an earlier epoch, too";
  size_t equal = 0;
  for (int64_t i = 0; i < 99; ++i) equal += other.start(i) == first[static_cast<size_t>(i)];
  EXPECT_LT(equal, 20U);
  EXPECT_ERROR(WindowOrder(19, 10, 1), "there are 19 tokens for training, and two texts");
}

}  // namespace
}  // namespace weft::llm
