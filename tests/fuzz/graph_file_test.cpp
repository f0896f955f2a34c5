// Damaged and hostile graph files and texts: each is read or refused with an Error, never worse.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/source_dir.h"
#include "tests/support/graph_forms.h"
#include "weft/base/error.h"
#include "weft/graph/binary.h"
#include "weft/graph/print.h"
#include "weft/trust/random.h"
#include "weft/trust/random_graph.h"

namespace weft {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<std::filesystem::path> corpus_files() {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(source_dir()) / "tests/fuzz/corpus/graph";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

/// A few files of different kinds, small enough for every truncation.
std::vector<Bytes> samples() {
  std::vector<Bytes> out;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Graph g;
    out.push_back(write_graph(random_graph(g, seed).roots));
  }
  return out;
}

TEST(GraphFile, FilesOfEarlierVersionsOfWeftStillRead) {
  const auto files = corpus_files();
  ASSERT_GE(files.size(), 10u);
  for (const auto& path : files) {
    const Bytes bytes = read_file(path);
    const bool hostile = path.filename().string().starts_with("bad");
    EXPECT_EQ(try_graph_file(bytes), !hostile) << path;
    if (hostile) continue;
    Graph g;
    EXPECT_EQ(write_graph(read_graph(g, bytes)), bytes) << path;
  }
}

TEST(GraphFile, EveryTruncationIsRefused) {
  for (const Bytes& bytes : samples())
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(try_graph_file({bytes.data(), size})) << size;
}

TEST(GraphFile, FlippedBytesAreReadOrRefused) {
  Random random(1);
  int accepted = 0;
  for (const Bytes& original : samples()) {
    for (int i = 0; i < 1500; ++i) {
      Bytes bytes = original;
      for (int64_t flips = random.between(1, 3); flips > 0; --flips)
        random.pick(bytes) ^= static_cast<std::byte>(random.between(1, 255));
      accepted += try_graph_file(bytes);
    }
  }
  EXPECT_GT(accepted, 0);  // else the mutations never get past the header
}

TEST(GraphFile, InsertedAndRepeatedPiecesAreReadOrRefused) {
  Random random(2);
  for (const Bytes& original : samples()) {
    for (int i = 0; i < 300; ++i) {
      Bytes bytes = original;
      const auto size = static_cast<int64_t>(bytes.size());
      const int64_t from = random.below(size), to = random.between(from, size);
      const Bytes piece(bytes.begin() + from, bytes.begin() + to);
      bytes.insert(bytes.begin() + random.below(size), piece.begin(), piece.end());
      try_graph_file(bytes);
    }
  }
}

std::string refusal(const Bytes& bytes) {
  Graph g;
  try {
    read_graph(g, bytes, "model.graph");
  } catch (const Error& error) {
    return error.message();
  }
  return "accepted";
}

Bytes with_header(std::initializer_list<int> rest) {
  Bytes bytes;
  for (const char c : std::string_view("weft\x1a\x01")) bytes.push_back(static_cast<std::byte>(c));
  for (const int b : rest) bytes.push_back(static_cast<std::byte>(b));
  return bytes;
}

TEST(GraphFile, ErrorsNameTheFileAndTheOffset) {
  EXPECT_EQ(refusal(Bytes(20, std::byte{'x'})),
            "model.graph: offset 1: it does not begin with \"weft\"; the file is damaged or not a "
            "graph file");
  Bytes newer = with_header({0, 0});
  newer[5] = std::byte{9};
  EXPECT_EQ(refusal(newer), "model.graph: version 9 of the format; this program reads version 1");
  EXPECT_EQ(refusal(with_header({1, 250, 14, 1, 0, 0, 0})),
            "model.graph: offset 8: 250 is no op; the file is damaged or not a graph file");
  // A count of 2^35 nodes in a file of a few bytes.
  const std::string huge = refusal(with_header({0xff, 0xff, 0xff, 0xff, 0x7f}));
  EXPECT_NE(huge.find("34359738367 items"), std::string::npos) << huge;
}

TEST(GraphText, MutatedTextIsReadOrRefused) {
  Random random(3);
  const std::string alphabet = "%0123456789=.,:#\"\\ \nxaddf32index-";
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Graph g;
    const std::string original = print_graph(random_graph(g, seed).roots);
    for (int i = 0; i < 300; ++i) {
      std::string text = original;
      for (int64_t edits = random.between(1, 3); edits > 0; --edits) {
        const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(text.size())));
        if (random.chance(50))
          text[at] = random.pick(alphabet);
        else
          text.erase(at, static_cast<size_t>(random.between(1, 8)));
        if (text.empty()) text = "%";
      }
      try_graph_text(text);
    }
  }
}

}  // namespace
}  // namespace weft
