// The corpus, mutated deterministically: every truncation, thousands of flipped bytes, spliced
// integers. Each gives an Error or a result inside the input, never a crash or our own bug.
#include "tests/fuzz/function_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/source_dir.h"
#include "weft/base/error.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

constexpr int kFlipsPerFile = 4000;

struct Tally {
  int accepted = 0, refused = 0;
};

// A copy of exactly the right size on the heap, so that ASan sees a read past its end.
void try_read(const FileReader& reader, std::string_view text, Tally& tally) {
  const std::vector<std::byte> copy(reinterpret_cast<const std::byte*>(text.data()),
                                    reinterpret_cast<const std::byte*>(text.data()) + text.size());
  try {
    reader.read(copy);
    ++tally.accepted;
  } catch (const InternalError& error) {
    ADD_FAILURE() << reader.name << ": " << error.what();
  } catch (const Error& error) {
    ++tally.refused;
    EXPECT_FALSE(error.message().empty());
  }
}

std::vector<std::string> corpus(const FileReader& reader) {
  std::vector<std::string> files;
  const std::string dir = std::string(source_dir()) + "/tests/fuzz/corpus/" + reader.name;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    std::ifstream in(entry.path(), std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    files.push_back(all.str());
  }
  std::sort(files.begin(), files.end());  // the order of a directory is not the same everywhere
  return files;
}

/// All readers whose libraries are here.
std::vector<FileReader> readers() {
  std::vector<FileReader> all(std::begin(kFileReaders), std::end(kFileReaders));
  all.push_back(kFunctionReader);
  std::erase_if(all, [](const FileReader& r) { return r.is_here && !r.is_here(); });
  return all;
}

constexpr uint64_t kNastyNumbers[] = {0,          1,          0x7f,        0x80,
                                      0xffff,     0x7fffffff, 0x80000000u, 0xffffffffu,
                                      ~0ull >> 1, 1ull << 63, ~0ull - 7,   ~0ull};

std::string mutated(std::string text, Random& random) {
  const auto length = static_cast<int64_t>(text.size());
  const auto at = static_cast<size_t>(random.below(length));
  switch (random.below(4)) {
    case 0: text[at] = static_cast<char>(random.next()); break;
    case 1: text[at] ^= static_cast<char>(1 << random.below(8)); break;
    case 2: {
      const uint64_t number = random.pick(kNastyNumbers);
      std::memcpy(text.data() + at, &number, std::min<size_t>(8, text.size() - at));
      break;
    }
    default: {
      const auto from = static_cast<size_t>(random.below(length));
      text.insert(at, text.substr(from, static_cast<size_t>(random.below(20))));
    }
  }
  return text;
}

TEST(FileReaders, SurviveEveryTruncation) {
  for (const FileReader& reader : readers()) {
    Tally tally;
    for (const std::string& file : corpus(reader)) {
      for (size_t length = 0; length <= file.size(); ++length) {
        try_read(reader, std::string_view(file).substr(0, length), tally);
      }
    }
    EXPECT_GT(tally.accepted, 0) << reader.name;
    EXPECT_GT(tally.refused, 50) << reader.name;
  }
}

TEST(FileReaders, SurviveFlippedAndSplicedBytes) {
  Random random(2);
  for (const FileReader& reader : readers()) {
    Tally tally;
    for (const std::string& file : corpus(reader)) {
      for (int i = 0; i < kFlipsPerFile; ++i) {
        std::string text = mutated(file, random);
        if (i % 3 == 0) text = mutated(std::move(text), random);
        if (reader.mend && i % 2 == 0)
          reader.mend(std::as_writable_bytes(std::span(text.data(), text.size())));
        try_read(reader, text, tally);
      }
    }
    EXPECT_GT(tally.accepted, 0) << reader.name;
    EXPECT_GT(tally.refused, kFlipsPerFile / 4) << reader.name;
  }
}

}  // namespace
}  // namespace weft
