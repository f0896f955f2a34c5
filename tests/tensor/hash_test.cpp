// Hashes against digests that Python's hashlib gives.
#include "weft/tensor/hash.h"
#include "weft/tensor/jit.h"

#include "tests/tensor/tensor_test.h"
#include "weft/base/format.h"

namespace weft {
namespace {

class Hashes : public TensorTest {};

std::vector<uint8_t> message(size_t n) {
  std::vector<uint8_t> all(n);
  for (size_t i = 0; i < n; ++i) all[i] = static_cast<uint8_t>(i * 7 % 256);
  return all;
}

Tensor abc() { return Tensor::from(std::vector<uint8_t>{'a', 'b', 'c'}); }

std::string hex(const Tensor& x) {
  std::string out;
  for (const uint8_t byte : x.to_vector<uint8_t>()) append_format(out, "{:02x}", byte);
  return out;
}

struct Known {
  size_t bytes;
  const char *sha3, *sha2;
};
const Known kKnown[] = {
    {0, "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a",
     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {3, "aa6c85d1a41110dd488f4a35719cf4bbcf2634d7c50401958ad41097096c7760",
     "b361d0f9a938a2bb4fbdc9c21dc5a859788041b0040919d8a811c1888184f4df"},
    {135, "2f6d0ed38ad614af2b245d79dba7a473731762188697602e4da5c39125c8a9a6",
     "2598272a6c5770d0162a1f043a4a07e07c7fc62c13dcd83f729656847eb911fd"},
    {136, "1c33504292f84699c382b4e53645f483c6cc5cf0fdb78ff87a1c4d12c26915a7",
     "b6cd300c480902ece7401302daf015838a1b947790173a2ee26fed74c564219a"},
    {200, "6e5643502d1d7bde0be71c012f90559cb4495bf27e53f1220a8aa464dce2fd52",
     "b531abd8dae7232c861ac9f50aff9952d29c8d4c3772551cc5bce5d39d2cd08d"},
};

TEST_F(Hashes, KnownMessages) {
  for (const Known& k : kKnown) {
    SCOPED_TRACE(k.bytes);
    const Tensor x = Tensor::from(message(k.bytes));
    EXPECT_EQ(hex(keccak(x)), k.sha3);
    EXPECT_EQ(hex(sha256(x)), k.sha2);
  }
}

TEST_F(Hashes, TheOracleAgrees) {
  EXPECT_EQ(shown(keccak(abc(), "shake_128")),
            shown(Tensor::from(keccak(abc(), "shake_128").to_vector<uint8_t>())));
  EXPECT_EQ(shown(sha256(abc())), shown(Tensor::from(sha256(abc()).to_vector<uint8_t>())));
}

TEST_F(Hashes, OtherSponges) {
  EXPECT_EQ(hex(keccak(abc(), "shake_128")), "5881092dd818bf5cf8a3ddb793fbcba7");
  EXPECT_EQ(hex(keccak(abc(), "sha3_224")),
            "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf");
  EXPECT_EQ(hex(keccak(abc(), "sha3_512")).substr(0, 32), "b751850b1a57168a5693cd924b6b096e");
  // Longer than one block of output.
  const std::string wide = hex(keccak(Tensor::from(message(400)), "shake_128", 400));
  EXPECT_EQ(wide.size(), 800u);
  EXPECT_EQ(wide.substr(0, 32), "ff0a430c0ab1ecfdc86d670586e5c1b0");
  EXPECT_EQ(wide.substr(768), "48353c5b5cdae26a3b2e0c6a35855af6");
  EXPECT_EQ(keccak(abc(), 168, 31, 0).dims().text(), "(0,)");
}

TEST_F(Hashes, ContentsAreTrees) {
  std::vector<uint8_t> data((1 << 20) + 1);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i % 251);
  const Tensor all = Tensor::from(data);
  EXPECT_EQ(hex(content_hash(all[{Slice(0, 5000)}])), "8e3b8c48e60b4344b003c04a4f300220");
  EXPECT_EQ(hex(content_hash(all)), "d9d43ff5bce56703643a024a139bfb00");
}

TEST_F(Hashes, RowsAreMessages) {
  const Tensor rows = Tensor::from(message(6), {2, 3});
  const std::string both = hex(keccak(rows));
  EXPECT_EQ(both, hex(keccak(rows[0])) + hex(keccak(rows[1])));
  EXPECT_EQ(hex(sha256(rows)), hex(sha256(rows[0])) + hex(sha256(rows[1])));
}

// Bytes in memory are read as words where they lie: what is written later must not show.
TEST_F(Hashes, AreOfWhatWasThere) {
  Tensor x = Tensor::arange(4096).cast(DType::U8).realize();
  const std::string before = shown(keccak(x.detach() * 1));
  const Tensor digest = keccak(x);
  x.assign(x + 1).realize();
  Jit bump([](Tensor& t) { t.assign(t + 1); }, "bump");
  for (int i = 0; i < 3; ++i) bump(x);
  EXPECT_EQ(digest.to_vector<uint8_t>(),
            keccak((Tensor::arange(4096).cast(DType::U8) * 1).realize()).to_vector<uint8_t>());
  EXPECT_NE(shown(keccak(x * 1)), before);
  x.copy_from(std::vector<std::byte>(4096));
  EXPECT_EQ(keccak(x).to_vector<uint8_t>(),
            keccak(Tensor::zeros({4096}, DType::U8)).to_vector<uint8_t>());
}

TEST_F(Hashes, OfMessagesSideBySide) {
  for (const int64_t count : {7, 8, 24}) {
    const Tensor x = Tensor::randint(0, 256, {count, 3, 200}).cast(DType::U8).realize();
    const Tensor all = keccak(x, "shake_128", 300);
    EXPECT_EQ(all.shape(), (std::vector<int64_t>{count, 3, 300}));
    for (const int64_t i : {int64_t{0}, count - 1})
      EXPECT_EQ(all[i][2].to_vector<uint8_t>(),
                keccak(x[i][2] * 1, "shake_128", 300).to_vector<uint8_t>());
  }
}

}  // namespace
}  // namespace weft
