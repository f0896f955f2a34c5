#include "weft/tensor/hash.h"

#include <array>
#include <bit>

#include "weft/base/context.h"
#include "weft/base/int128.h"
#include "weft/run/active_capture.h"
#include "weft/tensor/access.h"
#include "weft/tensor/tables.h"

namespace weft {

namespace {

// ---- words and bytes

/// The value of a message byte by byte: it and its suffix, a multiple of a block.
Tensor with_suffix(const Tensor& x, const std::vector<uint8_t>& suffix) {
  Dims shape = x.dims();
  shape.back() = static_cast<int64_t>(suffix.size());
  return Tensor::cat({x, constant_table(suffix, {suffix.size()}, x).expand(shape)}, -1);
}

/// Memory that is read under another node as well: as long as that lives, writes to the first one
/// leave the contents alone.
struct Lent {
  std::shared_ptr<Buffer> memory;
  RootedNode reader;
};

/// The memory of bytes that are there as a whole, as words of a machine whose lowest byte comes
/// first; an empty Tensor where they are not. A capture would not know whose memory it is.
Tensor words_in_memory(const Tensor& x, DType dtype) {
  const int64_t size = bits(dtype) / 8;
  Context& context = x.context();
  NodeRef n = x.node(), base = n;
  while (base->op == Op::Reshape) base = base->src(0);
  const bool whole =
      base->op == Op::Buffer && is_static(n) && n->dim(n->rank() - 1)->vmin % size == 0;
  if (!whole || std::endian::native != std::endian::little || active_capture(context)) return {};
  auto& buffers = context.get<BufferTable>();
  const std::shared_ptr<Buffer> memory = buffers.find(buffer_id(base));
  const auto address = reinterpret_cast<uintptr_t>(memory ? memory->data() : nullptr);
  if (address == 0 || address % static_cast<uintptr_t>(size) != 0) return {};
  const OpScope scope(x, CallSite::here());
  build::Extents dims = build::extents(n);
  dims.back() = scope.g.index(dims.back()->vmin / size);
  const auto lent = std::make_shared<Lent>(memory, RootedNode(base));
  return scope.result(
      buffers.add(std::shared_ptr<Buffer>(lent, memory.get()), dtype, dims, n->device));
}

/// (..., n) bytes to (..., n / size) words of size bytes, the first byte lowest or highest.
Tensor words(const Tensor& x, DType dtype, bool big_endian) {
  const int64_t size = bits(dtype) / 8;
  if (!big_endian)
    if (Tensor seen = words_in_memory(x, dtype); seen.defined()) return seen;
  const Tensor bytes = x.unflatten(-1, {-1, size}).cast(dtype);
  Tensor word;
  for (int64_t i = 0; i < size; ++i) {
    const Tensor part = bytes.index({kEllipsis, i}) << (8 * (big_endian ? size - 1 - i : i));
    word = word.defined() ? word | part : part;
  }
  return word;
}

Tensor bytes_of(const Tensor& words, bool big_endian) {
  const int64_t size = bits(words.dtype()) / 8;
  std::vector<Tensor> bytes;
  for (int64_t i = 0; i < size; ++i)
    bytes.push_back((words >> (8 * (big_endian ? size - 1 - i : i))).cast(DType::U8));
  return Tensor::stack(bytes, -1).flatten(-2, -1);
}

/// (..., blocks, n) to (..., blocks * rounds): in the first n rounds of every block a word each, or
/// all words of lane k in the first round.
Tensor per_round(const Tensor& x, int64_t rounds) {
  std::vector<DimPair> behind(x.ndim(), DimPair(0, 0));
  behind.back() = {0, rounds - x.size(-1)};
  return x.pad(behind).flatten(-2, -1);
}

/// A table of one number for every round, for all blocks of `like` (..., blocks * rounds).
template <class T>
Tensor for_every_block(const std::vector<T>& table, const Tensor& like) {
  const auto rounds = static_cast<int64_t>(table.size());
  return constant_table(table, {1, rounds}, like)
      .expand({like.size(-1) / rounds, rounds})
      .flatten()
      .expand(like.dims());
}

/// Rotations and sums of words inside a loop's body.
struct Words {
  Graph& g;

  NodeRef constant(NodeRef like, int64_t value) const {
    return g.constant(Value::of(like->dtype, value));
  }
  NodeRef rotated_left(NodeRef x, int64_t by) const {
    const int64_t width = bits(x->dtype);
    if (by == 0) return x;
    return g.alu(Op::Or, {g.alu(Op::Shl, {x, constant(x, by)}),
                          g.alu(Op::Shr, {x, constant(x, width - by)})});
  }
  NodeRef all_xor(std::initializer_list<NodeRef> list) const {
    NodeRef x = *list.begin();
    for (const NodeRef* n = list.begin() + 1; n != list.end(); ++n) x = g.alu(Op::Xor, {x, *n});
    return x;
  }
  NodeRef land(NodeRef a, NodeRef b) const { return g.alu(Op::And, {a, b}); }
  NodeRef lnot(NodeRef a) const { return g.alu(Op::Not, {a}); }
  NodeRef sum(std::initializer_list<NodeRef> list) const {
    NodeRef x = *list.begin();
    for (const NodeRef* n = list.begin() + 1; n != list.end(); ++n) x = g.add(x, *n);
    return x;
  }
};

// ---- Keccak-f[1600]: FIPS 202, section 3

constexpr int64_t kKeccakRounds = 24;
// A block is read in the first step of its loop: fewer steps ask less often, longer ones take
// longer to compile.
constexpr int64_t kRoundsPerStep = 4, kKeccakSteps = kKeccakRounds / kRoundsPerStep;
using Lanes = std::array<NodeRef, 25>;  // lane (x, y) at x + 5 y

/// Iota's constants by their shift register (3.2.5).
std::vector<uint64_t> keccak_constants() {
  std::vector<uint64_t> all;
  uint32_t state = 1;
  for (int64_t round = 0; round < kKeccakRounds; ++round) {
    uint64_t constant = 0;
    for (int j = 0; j <= 6; ++j) {
      if (state & 1) constant |= uint64_t{1} << ((1 << j) - 1);
      state = state & 0x80 ? (state << 1) ^ 0x171 : state << 1;
    }
    all.push_back(constant);
  }
  return all;
}

void theta(const Words& w, Lanes& a) {
  std::array<NodeRef, 5> c;
  for (size_t x = 0; x < 5; ++x)
    c[x] = w.all_xor({a[x], a[x + 5], a[x + 10], a[x + 15], a[x + 20]});
  for (size_t i = 0; i < 25; ++i)
    a[i] = w.all_xor({a[i], c[(i + 4) % 5], w.rotated_left(c[(i + 1) % 5], 1)});
}

/// Rho and pi: lanes turn by triangular numbers and change places.
Lanes moved(const Words& w, const Lanes& a) {
  Lanes b = a;
  size_t x = 1, y = 0;
  for (int64_t t = 0; t < 24; ++t) {
    const size_t to_x = y, to_y = (2 * x + 3 * y) % 5;
    b[to_x + 5 * to_y] = w.rotated_left(a[x + 5 * y], (t + 1) * (t + 2) / 2 % 64);
    x = to_x, y = to_y;
  }
  return b;
}

/// One round (3.3): theta, rho and pi, chi, iota.
Lanes keccak_round(const Words& w, Lanes a, NodeRef constant) {
  theta(w, a);
  const Lanes b = moved(w, a);
  for (size_t i = 0; i < 25; ++i) {
    const size_t line = i / 5 * 5;
    const NodeRef next = b[line + (i + 1) % 5], after = b[line + (i + 2) % 5];
    a[i] = w.all_xor({b[i], w.land(w.lnot(next), after)});
  }
  a[0] = w.all_xor({a[0], constant});
  return a;
}

/// `in`: the block's lanes (zeros but in its first step), then the constants of the step's rounds.
std::vector<NodeRef> keccak_step(const Words& w, std::span<const NodeRef> in,
                                 std::span<const NodeRef> carried) {
  const size_t lanes = in.size() - kRoundsPerStep;
  Lanes a;
  for (size_t i = 0; i < 25; ++i) a[i] = i < lanes ? w.all_xor({carried[i], in[i]}) : carried[i];
  for (NodeRef constant : in.subspan(lanes)) a = keccak_round(w, a, constant);
  return {a.begin(), a.end()};
}

/// The state's first words after every step, or after the last, in a new last axis.
Tensor absorbed(const Tensor& blocks, int64_t out_lanes, bool every_step) {
  const OpScope scope(blocks, CallSite::here());
  const int64_t lanes = blocks.size(-1);
  std::vector<Tensor> elems;
  for (int64_t k = 0; k < lanes; ++k)
    elems.push_back(per_round(blocks.index({kEllipsis, Slice(k, k + 1)}), kKeccakSteps));
  const std::vector<uint64_t> constants = keccak_constants();
  for (int64_t round = 0; round < kRoundsPerStep; ++round) {
    std::vector<uint64_t> each;
    for (int64_t step = 0; step < kKeccakSteps; ++step)
      each.push_back(constants[static_cast<size_t>(step * kRoundsPerStep + round)]);
    elems.push_back(for_every_block(each, elems[0]));
  }
  std::vector<NodeRef> nodes;
  for (const Tensor& t : elems) nodes.push_back(t.node());
  const std::vector<NodeRef> zeros(25, scope.g.constant(Value::of(DType::U64, 0)));
  const auto axis = static_cast<int64_t>(elems[0].ndim()) - 1;
  const std::array<int64_t, 1> salt{lanes};
  const auto state =
      build::loop(scope.g, nodes, zeros, axis, every_step, salt,
                  [&](auto in, auto carried) { return keccak_step({scope.g}, in, carried); });
  std::vector<Tensor> out;
  for (int64_t k = 0; k < out_lanes; ++k)
    out.push_back(scope.result(state[static_cast<size_t>(k)]));
  return Tensor::stack(out, -1);
}

Tensor checked_bytes(const char* tag, const Tensor& x) {
  if (x.dtype() != DType::U8 || x.ndim() == 0)
    fail_type(tag, "takes bytes along the last axis: got {} of shape {}; cast or view them as u8",
              name(x.dtype()), x.dims().text());
  return x;
}

/// A message with its suffix as words (..., blocks, rate / 8). Whole words of it do not mix with
/// the suffix's bytes.
Tensor keccak_blocks(const Tensor& x, int64_t rate, int64_t suffix) {
  std::vector<uint8_t> end(static_cast<size_t>(rate - x.size(-1) % rate), 0);
  end.front() = static_cast<uint8_t>(suffix);
  end.back() |= 0x80;
  const int64_t whole = x.size(-1) / 8 * 8;
  const Tensor rest = with_suffix(x.index({kEllipsis, Slice(whole, std::nullopt)}), end);
  Tensor message = words(rest, DType::U64, false);
  if (whole > 0)
    message =
        Tensor::cat({words(x.index({kEllipsis, Slice(0, whole)}), DType::U64, false), message}, -1);
  return message.unflatten(-1, {-1, rate / 8});
}

// Messages that are hashed together: a vector of words, one of each.
constexpr int64_t kTogether = 8;

/// (..., blocks, words) of many messages as (messages / 8, 8, blocks, words) whose words lie in
/// memory eight messages side by side. Transposing eight rows at a time reads whole cache lines,
/// where all rows, often a power of two apart, would push each other's out.
Tensor side_by_side(const Tensor& message) {
  const Tensor rows = message.flatten(-2, -1);
  const int64_t words = rows.size(-1), count = rows.numel() / std::max<int64_t>(1, words);
  if (count < kTogether || count % kTogether != 0) return message;
  const Tensor transposed =
      rows.reshape({count / kTogether, kTogether, words}).permute({0, 2, 1}).contiguous();
  return transposed.permute({0, 2, 1}).unflatten(-1, {message.size(-2), message.size(-1)});
}

}  // namespace

Tensor keccak(const Tensor& given, int64_t rate, int64_t suffix, int64_t bytes, CallSite at) {
  const CallSiteScope site(at);
  const Tensor x = checked_bytes("keccak", given);
  if (rate < 8 || rate >= 200 || rate % 8 != 0 || suffix < 1 || suffix > 127 || bytes < 0)
    fail("keccak",
         "a rate of {}, a suffix of {} and {} bytes: the rate is a multiple of 8 below 200, the "
         "suffix from 1 to 127",
         rate, suffix, bytes);
  if (bytes == 0) return x.index({kEllipsis, Slice(0, 0)});
  const Tensor message = side_by_side(keccak_blocks(x, rate, suffix));
  const int64_t outputs = (bytes + rate - 1) / rate, lanes = (std::min(bytes, rate) + 7) / 8;
  // Further blocks of output are further permutations of nothing.
  std::vector<DimPair> more(message.ndim(), DimPair(0, 0));
  more[message.ndim() - 2] = {0, outputs - 1};
  Tensor state = absorbed(message.pad(more), lanes, outputs > 1);
  const int64_t first = message.size(-2) * kKeccakSteps - 1;
  if (outputs > 1)
    state =
        state.index({kEllipsis, Slice(first, std::nullopt, kKeccakSteps), Slice()}).flatten(-2, -1);
  const Tensor digests = bytes_of(state, false).index({kEllipsis, Slice(0, bytes)});
  Dims shape = x.dims();
  shape.back() = bytes;
  return digests.reshape(shape);
}

namespace {

struct Sponge {
  std::string_view name;
  int64_t rate, suffix, bytes;
  bool any_length;
};
// FIPS 202, section 6: capacity twice the digest; suffixes 01 and 1111 with the first bit of
// padding.
constexpr Sponge kSponges[] = {{"sha3_224", 144, 6, 28, false},  {"sha3_256", 136, 6, 32, false},
                               {"sha3_384", 104, 6, 48, false},  {"sha3_512", 72, 6, 64, false},
                               {"shake_128", 168, 31, 16, true}, {"shake_256", 136, 31, 32, true}};

}  // namespace

Tensor keccak(const Tensor& x, std::string_view name, int64_t bytes, CallSite at) {
  const CallSiteScope site(at);
  for (const Sponge& s : kSponges) {
    if (s.name != name) continue;
    if (bytes != 0 && bytes != s.bytes && !s.any_length)
      fail("keccak", "{} gives {} bytes, not {}", name, s.bytes, bytes);
    return keccak(x, s.rate, s.suffix, bytes != 0 ? bytes : s.bytes);
  }
  fail("keccak",
       "\"{}\" is none of sha3_224, sha3_256, sha3_384, sha3_512, shake_128 and shake_256", name);
}

// ---- SHA-256: FIPS 180-4, section 6.2

namespace {

constexpr int64_t kShaRounds = 64;

/// The first 32 bits of the fractional parts of roots of the first primes (4.2.2, 5.3.3), by
/// integer search: the largest r with r^power <= prime * 2^(32 power).
std::vector<uint32_t> prime_roots(size_t count, int power) {
  std::vector<uint32_t> out;
  for (uint32_t p = 2; out.size() < count; ++p) {
    bool prime = true;
    for (uint32_t d = 2; d * d <= p; ++d) prime &= p % d != 0;
    if (!prime) continue;
    // Roots below 2^5 with 32 bits behind the point; the cube of 2^37 has 112 bits.
    uint64_t root = 0;
    for (int bit = 36; bit >= 0; --bit) {
      const uint64_t r = root | uint64_t{1} << bit;
      const Int128 wide = static_cast<Int128>(r) * r * (power == 3 ? r : 1);
      const bool fits = wide <= static_cast<Int128>(p) << (32 * power);
      if (fits) root = r;
    }
    out.push_back(static_cast<uint32_t>(root));
  }
  return out;
}

/// Carried: 16 words of the message schedule, a to h, and the hash so far.
std::vector<NodeRef> sha_round(const Words& w, std::span<const NodeRef> in,
                               std::span<const NodeRef> carried) {
  const auto right = [&](NodeRef x, int64_t by) { return w.rotated_left(x, 32 - by); };
  const auto shifted = [&](NodeRef x, int64_t by) {
    return w.g.alu(Op::Shr, {x, w.constant(x, by)});
  };
  const auto schedule = carried.subspan(0, 16), letters = carried.subspan(16, 8),
             hash = carried.subspan(24, 8);
  NodeRef round = in[2];
  NodeRef given = w.g.lt(round, w.constant(round, 16));
  NodeRef first = w.g.alu(Op::Eq, {round, w.constant(round, 0)});
  NodeRef last = w.g.alu(Op::Eq, {round, w.constant(round, kShaRounds - 1)});
  const NodeRef w1 = schedule[1], w14 = schedule[14];
  NodeRef extended =
      w.sum({w.all_xor({right(w14, 17), right(w14, 19), shifted(w14, 10)}), schedule[9],
             w.all_xor({right(w1, 7), right(w1, 18), shifted(w1, 3)}), schedule[0]});
  NodeRef word = w.g.where(given, in[0], extended);
  std::array<NodeRef, 8> v;
  for (size_t i = 0; i < 8; ++i) v[i] = w.g.where(first, hash[i], letters[i]);
  const auto [a, b, c, d, e, f, g, h] = v;
  NodeRef choice = w.all_xor({w.land(e, f), w.land(w.lnot(e), g)});
  NodeRef majority = w.all_xor({w.land(a, b), w.land(a, c), w.land(b, c)});
  NodeRef t1 =
      w.sum({h, w.all_xor({right(e, 6), right(e, 11), right(e, 25)}), choice, in[1], word});
  NodeRef t2 = w.sum({w.all_xor({right(a, 2), right(a, 13), right(a, 22)}), majority});
  const std::array<NodeRef, 8> next{w.sum({t1, t2}), a, b, c, w.sum({d, t1}), e, f, g};
  std::vector<NodeRef> out(schedule.begin() + 1, schedule.end());
  out.push_back(word);
  out.insert(out.end(), next.begin(), next.end());
  for (size_t i = 0; i < 8; ++i) out.push_back(w.g.where(last, w.sum({hash[i], next[i]}), hash[i]));
  return out;
}

}  // namespace

Tensor sha256(const Tensor& given, CallSite at) {
  const OpScope scope(given, at);
  const Tensor x = checked_bytes("sha256", given);
  const int64_t n = x.size(-1);
  std::vector<uint8_t> end(static_cast<size_t>(64 - (n + 8) % 64 + 8), 0);
  end[0] = 0x80;
  for (size_t i = 0; i < 8; ++i)
    end[end.size() - 1 - i] = static_cast<uint8_t>(static_cast<uint64_t>(n) * 8 >> (8 * i));
  const Tensor blocks = words(with_suffix(x, end), DType::U32, true).unflatten(-1, {-1, 16});
  const Tensor message = per_round(blocks, kShaRounds);
  std::vector<int32_t> numbers;
  for (int32_t i = 0; i < kShaRounds; ++i) numbers.push_back(i);
  const NodeRef elems[] = {message.node(),
                           for_every_block(prime_roots(kShaRounds, 3), message).node(),
                           for_every_block(numbers, message).node()};
  std::vector<NodeRef> inits(24, scope.g.constant(Value::of(DType::U32, 0)));
  for (const uint32_t h : prime_roots(8, 2))
    inits.push_back(scope.g.constant(Value::of(DType::U32, static_cast<int64_t>(h))));
  const std::array<int64_t, 1> salt{kShaRounds};
  const auto state =
      build::loop(scope.g, elems, inits, static_cast<int64_t>(message.ndim()) - 1, false, salt,
                  [&](auto in, auto carried) { return sha_round({scope.g}, in, carried); });
  std::vector<Tensor> hash;
  for (size_t i = 24; i < 32; ++i) hash.push_back(scope.result(state[i]));
  return bytes_of(Tensor::stack(hash, -1), true);
}

// ---- trees

namespace {

constexpr int64_t kChunk = 1 << 20, kLeaf = 4096, kDigest = 16;

Tensor padded_to(const Tensor& bytes, int64_t multiple) {
  const int64_t n = bytes.size(0), whole = std::max<int64_t>(1, (n + multiple - 1) / multiple);
  return bytes.pad({{0, whole * multiple - n}});
}

/// (n) bytes, a multiple of a chunk, to 16 for each chunk.
Tensor chunk_digests(const Tensor& bytes) {
  const Tensor leaves = keccak(bytes.reshape({-1, kLeaf}), "shake_128").contiguous();
  return keccak(leaves.reshape({-1, kChunk / kLeaf * kDigest}), "shake_128").contiguous().flatten();
}

Tensor bytes_of_contents(const Tensor& x) {
  if (x.dtype() == DType::U8) return x.flatten();
  if (is_bool(x.dtype())) return x.flatten().cast(DType::U8);
  constexpr DType kUnsigned[] = {DType::U8, DType::U16, DType::U32, DType::U64};
  const int size = bits(x.dtype()) / 8;
  const DType same_width = kUnsigned[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
  return bytes_of(x.flatten().bitcast(same_width), false);
}

}  // namespace

Tensor content_hash(const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  Tensor digests = chunk_digests(padded_to(bytes_of_contents(x), kChunk));
  while (digests.size(0) > kDigest) digests = chunk_digests(padded_to(digests, kChunk));
  return digests;
}

}  // namespace weft
