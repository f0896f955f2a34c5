// Words put together from neighbours in memory are read as they lie, and nothing else is.
#include "weft/optimize/read_words.h"

#include "tests/lower/kernels.h"

namespace weft {
namespace {

using namespace test;

/// A word in which the piece at `shift` is element `scale` * i + offset.
struct Piece {
  int64_t offset, shift;
};
struct Words {
  KernelBuilder b;
  NodeRef sink;

  Words(DType dtype, int64_t scale, std::initializer_list<Piece> pieces, bool read_again = false) {
    NodeRef in = b.param(1, dtype, 64), i = b.range(8, 0), word = nullptr;
    for (const Piece& p : pieces) {
      NodeRef at = b.g.add(b.g.mul(i, b.index(scale)), b.index(p.offset));
      NodeRef x = b.load(in, at);
      if (dtype == DType::BF16) x = b.g.make(Op::Bitcast, DType::U16, {x});
      x = b.g.cast(x, DType::U32);
      NodeRef by = b.g.constant(Value::of(DType::U32, p.shift));
      if (p.shift > 0) x = b.g.make(Op::Shl, DType::U32, {x, by});
      word = word ? b.g.alu(Op::Or, {word, x}) : x;
    }
    if (read_again) word = b.g.alu(Op::Or, {word, b.g.cast(b.load(in, i), DType::U32)});
    b.store(b.param(0, DType::U32, 8), i, word);
    sink = b.kernel().sink;
  }
  bool joined() { return optimize::read_words(b.g, sink) != sink; }
};

TEST(ReadWords, ThatLieAsTheyArePutTogether) {
  EXPECT_TRUE(Words(DType::U8, 4, {{0, 0}, {1, 8}, {2, 16}, {3, 24}}).joined());
  EXPECT_TRUE(Words(DType::BF16, 2, {{0, 0}, {1, 16}}).joined());
  EXPECT_TRUE(Words(DType::U16, 4, {{3, 16}, {2, 0}}).joined());
}

TEST(ReadWords, NothingElse) {
  EXPECT_FALSE(Words(DType::U8, 4, {{0, 0}, {1, 8}, {2, 16}}).joined()) << "half a word";
  EXPECT_FALSE(Words(DType::U16, 2, {{0, 16}, {1, 0}}).joined()) << "the other way round";
  EXPECT_FALSE(Words(DType::U16, 2, {{0, 0}, {2, 16}}).joined()) << "no neighbours";
  EXPECT_FALSE(Words(DType::I16, 2, {{0, 0}, {1, 16}}).joined()) << "signs fill the word";
  EXPECT_FALSE(Words(DType::BF16, 2, {{1, 0}, {2, 16}}).joined()) << "numbers across two words";
  EXPECT_FALSE(Words(DType::BF16, 2, {{0, 0}, {1, 16}}, true).joined()) << "numbers, too";
}

/// A load of several elements of the buffer as it is, where not all of it is words.
TEST(ReadWords, ThatBeginAtAnyElement) {
  const auto load_of = [](Words words) {
    NodeRef joined = optimize::read_words(words.b.g, words.sink);
    for (NodeRef n : Toposort(joined))
      if (n->op == Op::Load && n->dtype == DType::U32) return n->src(0)->dtype;
    return DType::Void;
  };
  EXPECT_EQ(load_of(Words(DType::U16, 2, {{1, 0}, {2, 16}})), DType::U16);
  EXPECT_EQ(load_of(Words(DType::U16, 3, {{0, 0}, {1, 16}})), DType::U16);
  EXPECT_EQ(load_of(Words(DType::U8, 18, {{2, 0}, {3, 8}, {4, 16}, {5, 24}})), DType::U8);
  EXPECT_EQ(load_of(Words(DType::U16, 2, {{0, 0}, {1, 16}}, true)), DType::U16);
}

TEST(ReadWords, KeepValues) {
  Words words(DType::U8, 4, {{0, 0}, {1, 8}, {2, 16}, {3, 24}});
  NodeRef joined = optimize::read_words(words.b.g, words.sink);
  Buffers bytes(2), whole(2);
  bytes[0].assign(8, Value::of(DType::U32, 0));
  whole[0] = bytes[0];
  for (int64_t i = 0; i < 64; ++i) bytes[1].push_back(Value::of(DType::U8, 7 * i + 3));
  for (size_t i = 0; i < 16; ++i) {
    uint64_t word = 0;
    for (size_t k = 0; k < 4; ++k) word |= bytes[1][4 * i + k].as_uint() << (8 * k);
    whole[1].push_back(Value::of(DType::U32, static_cast<int64_t>(word)));
  }
  const Buffers want = run_kernel(words.sink, bytes), got = run_kernel(joined, whole);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(got[0][i].text(), want[0][i].text());
}

}  // namespace
}  // namespace weft
