// Local memory of a group: what one item writes, no other touches before the next barrier. All
// items are followed through the program side by side, as far as what decides where they read and
// write is known: loops that go round often are entered for their first iterations and the last.
#include <algorithm>
#include <deque>
#include <map>

#include "weft/base/format.h"
#include "weft/graph/node_map.h"
#include "weft/graph/verify_parts.h"

namespace weft {
namespace {

constexpr int64_t kMostWork = int64_t{1} << 22;  // values of items: what takes more is left
constexpr int64_t kFirstIterations = 3;  // memory for two iterations is used again in the third
constexpr int64_t kShortLoop = 64;

bool is_local(NodeRef n) {
  return (n->op == Op::Load || n->op == Op::Store) && n->src(0)->op == Op::Local;
}
size_t mask_source(NodeRef access) { return access->op == Op::Load ? 2 : 3; }

/// What a node is for each item, where that is known.
struct Column {
  std::vector<int64_t> value;
  std::vector<uint8_t> known;
  explicit Column(size_t items) : value(items), known(items) {}
};

int64_t wrapped(DType dtype, int64_t x) {
  if (is_bool(dtype)) return x != 0;
  const int width = is_index(dtype) ? 64 : bits(dtype);
  if (width == 64) return x;
  const auto high = static_cast<uint64_t>(x) << (64 - width);
  return is_unsigned(dtype) ? static_cast<int64_t>(high >> (64 - width))
                            : static_cast<int64_t>(high) >> (64 - width);
}

/// Of known integers; false where the op is none of what indices are made of.
bool integer_op(NodeRef n, const int64_t* x, int64_t& out) {
  const auto a = static_cast<uint64_t>(x[0]), b = static_cast<uint64_t>(x[1]);
  switch (n->op) {
    case Op::Neg: out = static_cast<int64_t>(-a); break;
    case Op::Not: out = is_bool(n->dtype) ? !x[0] : ~x[0]; break;
    case Op::Cast: out = x[0]; break;
    case Op::Add: out = static_cast<int64_t>(a + b); break;
    case Op::Mul: out = static_cast<int64_t>(a * b); break;
    case Op::MulAcc: out = static_cast<int64_t>(a * b + static_cast<uint64_t>(x[2])); break;
    case Op::And: out = x[0] & x[1]; break;
    case Op::Or: out = x[0] | x[1]; break;
    case Op::Xor: out = x[0] ^ x[1]; break;
    case Op::Max: out = std::max(x[0], x[1]); break;
    case Op::Min: out = std::min(x[0], x[1]); break;
    case Op::Lt: out = x[0] < x[1]; break;
    case Op::Le: out = x[0] <= x[1]; break;
    case Op::Eq: out = x[0] == x[1]; break;
    case Op::Ne: out = x[0] != x[1]; break;
    case Op::Where: out = x[0] ? x[1] : x[2]; break;
    case Op::Shl:
      if (b >= 64) return false;
      out = static_cast<int64_t>(a << b);
      break;
    case Op::Shr:
      if (b >= 64) return false;
      out = x[0] >> b;
      break;
    case Op::CDiv:
    case Op::CMod:
      if (x[1] == 0 || x[1] == -1) return false;
      out = n->op == Op::CDiv ? x[0] / x[1] : x[0] % x[1];
      break;
    default: return false;
  }
  out = wrapped(n->dtype, out);
  return true;
}

class Items {
 public:
  explicit Items(const LinearProgram& program)
      : code_(program.code),
        group_(program.launch.group),
        items_(static_cast<size_t>(program.launch.items())),
        active_(items_, 1) {
    want();
    match_brackets();
  }

  Found run() {
    for (size_t pc = 0; pc < code_.size() && !found_ && work_ < kMostWork;) pc = step(pc);
    return std::move(found_);
  }

 private:
  struct Word {
    int32_t writer = -1, reader = -1;
    bool several = false;  // have read it
    uint32_t since = 0;    // barriers
  };
  struct Loop {
    NodeRef range;
    size_t begin;
    std::vector<int64_t> left = {};  // iterations, the next one last
    std::vector<uint8_t> outside;
    bool certain;
    int64_t last = -1;
  };

  /// What indices, masks and the sizes of loops are computed from.
  void want() {
    for (size_t i = code_.size(); i-- > 0;) {
      NodeRef n = code_[i];
      const auto add = [this](NodeRef s) { wanted_[s] = true; };
      if (is_local(n)) {
        add(n->src(1));
        if (n->nsrc > mask_source(n)) add(n->src(mask_source(n)));
      } else if (n->op == Op::Range || n->op == Op::If || (wanted_.contains(n) && is_alu(n->op))) {
        for (NodeRef s : n->src()) add(s);
      }
    }
  }
  void match_brackets() {
    std::vector<size_t> open;
    ends_.assign(code_.size(), 0);
    uses_local_.assign(code_.size(), 0);
    waits_.assign(code_.size(), 0);
    size_t uses = 0, waits = 0;
    std::vector<std::pair<size_t, size_t>> before;
    for (size_t i = 0; i < code_.size(); ++i) {
      const Op op = code_[i]->op;
      uses += is_local(code_[i]);
      waits += op == Op::Barrier;
      if (op == Op::Range || op == Op::If) open.push_back(i), before.emplace_back(uses, waits);
      if (op != Op::EndRange && op != Op::EndIf) continue;
      ends_[open.back()] = i;
      uses_local_[open.back()] = uses > before.back().first;
      waits_[open.back()] = waits > before.back().second;
      open.pop_back(), before.pop_back();
    }
  }

  /// Gives the next one's place.
  size_t step(size_t pc) {
    NodeRef n = code_[pc];
    switch (n->op) {
      case Op::Range:
      case Op::If:
        if (!uses_local_[pc]) return ends_[pc] + 1;
        return n->op == Op::Range ? enter(pc) : enter_if(pc);
      case Op::EndRange: return next();
      case Op::EndIf: return leave(), pc + 1;
      case Op::Barrier: ++barriers_; return pc + 1;
      default: break;
    }
    if (is_local(n))
      touch(n);
    else if (wanted_.contains(n))
      evaluate(n);
    return pc + 1;
  }

  // ---- blocks

  size_t enter(size_t pc) {
    const Column& size = column(code_[pc]->src(0));
    loops_.push_back({.range = code_[pc], .begin = pc, .outside = active_, .certain = certain_});
    Loop& loop = loops_.back();
    int64_t most = 0;
    bool known = true;
    for (size_t i = 0; i < items_; ++i) {
      known = known && size.known[i];
      most = std::max(most, size.value[i]);
    }
    if (!known) most = kFirstIterations;
    certain_ = certain_ && known;
    const bool all = !waits_[pc] && most <= kShortLoop;
    for (int64_t i = most; i-- > 0;) {
      if (!all && i >= kFirstIterations && i != most - 1) i = kFirstIterations - 1;
      loop.left.push_back(i);
    }
    return iterate();
  }
  size_t next() { return iterate(); }
  size_t iterate() {
    Loop& loop = loops_.back();
    if (loop.left.empty()) {
      const size_t after = ends_[loop.begin] + 1;
      leave();
      return after;
    }
    const int64_t now = loop.left.back();
    loop.left.pop_back();
    // Iterations that are left out would have passed barriers, or not: what was before is
    // forgotten.
    if (now > loop.last + 1) ++barriers_;
    loop.last = now;
    const Column& size = column(loop.range->src(0));
    Column& at = fresh(loop.range);
    for (size_t i = 0; i < items_; ++i) {
      at.value[i] = now;
      at.known[i] = 1;
      active_[i] = loop.outside[i] && (!size.known[i] || now < size.value[i]);
    }
    return loop.begin + 1;
  }
  size_t enter_if(size_t pc) {
    loops_.push_back({.range = code_[pc], .begin = pc, .outside = active_, .certain = certain_});
    const Column& condition = column(code_[pc]->src(0));
    for (size_t i = 0; i < items_; ++i) {
      certain_ = certain_ && condition.known[i];
      active_[i] = active_[i] && (!condition.known[i] || condition.value[i]);
    }
    return pc + 1;
  }
  void leave() {
    active_ = std::move(loops_.back().outside);
    certain_ = loops_.back().certain;
    loops_.pop_back();
  }

  // ---- values

  Column& fresh(NodeRef n) {
    work_ += static_cast<int64_t>(items_);
    const uint32_t* known = numbers_.find(n);
    if (known) return columns_[*known];
    numbers_[n] = static_cast<uint32_t>(columns_.size());
    return columns_.emplace_back(items_);
  }
  /// Of constants, which stand anywhere, and of what was met; nothing is known of others.
  const Column& column(NodeRef n) {
    if (const uint32_t* known = numbers_.find(n)) return columns_[*known];
    Column& out = fresh(n);
    if (n->op == Op::Const && !is_float(n->dtype)) fill(out, [&](size_t) { return n->vmin; });
    return out;
  }

  void evaluate(NodeRef n) {
    if (n->op == Op::Const) return static_cast<void>(column(n));
    std::array<const Column*, 3> src{};
    const bool computed = is_alu(n->op) && n->nsrc <= src.size() && !is_float(n->dtype);
    for (size_t k = 0; k < n->nsrc && computed; ++k) src[k] = &column(n->src(k));
    Column& out = fresh(n);
    std::ranges::fill(out.known, 0);
    if (n->op == Op::WorkId && static_cast<Binding>(n->int_arg(0)) == Binding::Group)
      number_items(n, out);
    if (computed && n->lanes == 1) apply(n, src, out);
  }
  void apply(NodeRef n, std::span<const Column* const> src, Column& out) {
    for (size_t i = 0; i < items_; ++i) {
      int64_t x[3] = {};
      bool all = true;
      for (size_t k = 0; k < n->nsrc; ++k) {
        x[k] = src[k]->value[i];
        all = all && src[k]->known[i];
      }
      if (all) {
        out.known[i] = integer_op(n, x, out.value[i]);
      } else if (is_bool(n->dtype) && n->op == Op::And) {
        out.known[i] = (src[0]->known[i] && !x[0]) || (src[1]->known[i] && !x[1]);
        out.value[i] = 0;
      }
    }
  }
  template <class F>
  void fill(Column& out, F&& value_of) {
    for (size_t i = 0; i < items_; ++i) out.value[i] = value_of(i), out.known[i] = 1;
  }
  void number_items(NodeRef id, Column& out) {
    const auto axis = static_cast<size_t>(id->int_arg(1));
    int64_t step = 1;
    for (size_t a = 0; a < axis; ++a) step *= group_[a];
    fill(out, [&](size_t i) { return static_cast<int64_t>(i) / step % group_[axis]; });
  }

  // ---- memory

  void touch(NodeRef access) {
    const Column& at = column(access->src(1));
    const Column* mask =
        access->nsrc > mask_source(access) ? &column(access->src(mask_source(access))) : nullptr;
    const int64_t size = access->src(0)->src(0)->vmin;
    std::vector<Word>& words = memory_[access->src(0)->int_arg(0)];
    if (words.size() < static_cast<size_t>(size)) words.resize(static_cast<size_t>(size));
    for (size_t i = 0; i < items_ && !found_; ++i) {
      if (!active_[i] || !at.known[i] || (mask && mask->known[i] && !mask->value[i])) continue;
      for (int64_t lane = 0; lane < access->lanes && !found_; ++lane) {
        const int64_t place = at.value[i] + lane;
        if (place >= 0 && place < size)
          touch(access, words[static_cast<size_t>(place)], place, static_cast<int32_t>(i));
        else if (certain_ && (!mask || mask->known[i]))
          found_ =
              Problem{access, strformat("item {} of a group touches element {} of local memory "
                                        "of {}",
                                        i, place, size)};
      }
    }
    work_ += static_cast<int64_t>(items_);
  }
  void touch(NodeRef access, Word& word, int64_t place, int32_t item) {
    if (word.since != barriers_) word = {.since = barriers_};
    const bool writes = access->op == Op::Store;
    const bool others_wrote = word.writer >= 0 && word.writer != item;
    const bool others_read = word.several || (word.reader >= 0 && word.reader != item);
    if (others_wrote || (writes && others_read)) {
      found_ = Problem{
          access,
          strformat("a data race: item {} of a group {} element {} of local memory, which "
                    "item {} {}, and no barrier lies between",
                    item, writes ? "writes" : "reads", place,
                    others_wrote ? word.writer : word.reader, others_wrote ? "writes" : "reads")};
      return;
    }
    if (writes) {
      word.writer = item;
    } else {
      word.several = word.several || (word.reader >= 0 && word.reader != item);
      word.reader = item;
    }
  }

  std::span<const NodeRef> code_;
  std::array<int64_t, 3> group_;
  size_t items_;
  std::vector<uint8_t> active_;
  bool certain_ = true;  // that these items come here
  NodeMap<bool> wanted_;
  NodeMap<uint32_t> numbers_;
  std::deque<Column> columns_;  // by number
  std::vector<size_t> ends_;
  std::vector<uint8_t> uses_local_, waits_;
  std::vector<Loop> loops_;
  std::map<int64_t, std::vector<Word>> memory_;
  uint32_t barriers_ = 1;
  int64_t work_ = 0;
  Found found_;
};

}  // namespace

Found find_local_race(const LinearProgram& program) {
  if (!program.launch.grouped || std::ranges::none_of(program.code, is_local)) return std::nullopt;
  return Items(program).run();
}

}  // namespace weft
