// The matcher table: by-op lists -> AND of bitsets over source ops -> a register program per
// survivor.
#include <array>
#include <bit>
#include <chrono>

#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/rewrite/fire.h"
#include "weft/rewrite/pattern_compiler.h"
#include "weft/rewrite/print.h"
#include "weft/rewrite/switches.h"

namespace weft {
namespace {

/// Source ops at one position, as classes: class 0 is every op that no pattern names there.
struct PositionTable {
  std::array<uint8_t, 256> class_of{};
  std::vector<uint64_t> bits;  // [class][word]
  size_t classes = 1;
};

constexpr size_t kDomains = 5;  // index, bits, bool, float, and what has no domain

/// What may match at nodes of one op. Bit k of every set is program k of the op.
struct OpTable {
  std::vector<uint16_t> programs;  // in order of rules
  size_t words = 0;
  std::array<PositionTable, 3> position;
  std::vector<uint64_t> of_domain;     // [domain of the operands][word]
  std::vector<uint64_t> same_sources;  // programs that need source 0 to be source 1
  bool by_first_source = false;        // comparisons: the operands' dtype is not the node's
};

size_t domain_index(DType d) {
  switch (kind(d)) {
    case DTypeKind::Index: return 0;
    case DTypeKind::Bool: return 2;
    case DTypeKind::Float: return 3;
    case DTypeKind::Void: return 4;
    default: return 1;
  }
}

void build_domains(OpTable& t, std::span<const RuleProgram> programs) {
  constexpr Domain domains[] = {Domain::Index, Domain::Bits, Domain::Bool,
                                Domain::Float | Domain::Real, pat::kAny};
  t.of_domain.assign(kDomains * t.words, 0);
  t.same_sources.assign(t.words, 0);
  for (size_t k = 0; k < t.programs.size(); ++k) {
    const RuleProgram& p = programs[t.programs[k]];
    const uint64_t bit = uint64_t{1} << (k % 64);
    for (size_t d = 0; d < kDomains; ++d)
      if (!p.of_operands || has(domains[d], p.domain)) t.of_domain[d * t.words + k / 64] |= bit;
    if (p.same_sources) t.same_sources[k / 64] |= bit;
  }
}

void build_position(OpTable& t, size_t p, std::span<const RuleProgram> programs) {
  PositionTable& table = t.position[p];
  for (uint16_t i : t.programs) {
    const uint8_t op = programs[i].source_op[p];
    if (op != 0 && table.class_of[op] == 0)
      table.class_of[op] = static_cast<uint8_t>(table.classes++);
  }
  table.bits.assign(table.classes * t.words, 0);
  for (size_t k = 0; k < t.programs.size(); ++k) {
    const uint8_t op = programs[t.programs[k]].source_op[p];
    for (size_t c = 0; c < table.classes; ++c)
      if (op == 0 || table.class_of[op] == c)
        table.bits[c * t.words + k / 64] |= uint64_t{1} << (k % 64);
  }
}

bool literal_matches(NodeRef n, const PatNode& literal, int64_t bits) {
  if (n->op != Op::Const) return false;
  if (literal.kind == PatKind::Float)
    return is_float(n->dtype) && const_value(n) == Value::of(n->dtype, std::bit_cast<double>(bits));
  if (n->dtype == DType::Index || is_signed_int(n->dtype)) return n->vmin == bits;
  return const_value(n) == Value::of(n->dtype, bits);
}

/// Runs a program from `root`; registers then hold the nodes it visited.
bool run(const RuleProgram& program, std::span<const MatchStep> steps, NodeRef root, NodeRef* reg) {
  reg[0] = root;
  for (const MatchStep& s : steps) {
    NodeRef n = reg[s.from];
    switch (s.code) {
      case MatchStep::Load: reg[s.to] = n->src(s.index); break;
      case MatchStep::IsOp:
        if (n->op != static_cast<Op>(s.index)) return false;
        break;
      case MatchStep::Sources:
        if (n->nsrc != s.index) return false;
        break;
      case MatchStep::Same:
        if (n != reg[s.to]) return false;
        break;
      case MatchStep::HasDType:
        if (n->dtype != static_cast<DType>(s.index)) return false;
        break;
      case MatchStep::Literal: {
        const Pat& lhs = program.entry->rule->lhs;
        const PatNode& literal = lhs.node[s.index];
        if (!literal_matches(n, literal, lhs.literal[literal.arg])) return false;
        break;
      }
    }
  }
  return true;
}

/// Hands out the variables; false where one has a dtype outside the rule's domain.
bool bind(const RuleProgram& program, NodeRef const* reg, Match& m) {
  for (int s = 0; s < kPatSlots; ++s) {
    const uint8_t r = program.reg_of[s];
    if (r == RuleProgram::kUnbound) continue;
    m.slot[s] = reg[r];
    const bool boolean = s >= kFirstBoolSlot && s < kFirstConstSlot;
    if (!boolean && !has(domain_of(reg[r]->dtype), program.domain)) return false;
  }
  return true;
}

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

struct RuleTable {
  std::vector<RuleProgram> programs;
  std::vector<MatchStep> steps;
  std::array<std::unique_ptr<OpTable>, 256> by_op;
  size_t capped = 0;

  void add(const RuleEntry& entry, size_t index, Domain domain) {
    const size_t first = programs.size();
    capped += compile_pattern(entry, programs, steps);
    for (size_t i = first; i < programs.size(); ++i) {
      programs[i].rule_index = static_cast<uint16_t>(index);
      programs[i].domain = domain;
    }
  }

  void index() {
    for (const OpInfo& row : kOps) {
      auto t = std::make_unique<OpTable>();
      for (size_t i = 0; i < programs.size(); ++i)
        if (programs[i].root_op == 0 || programs[i].root_op == static_cast<uint8_t>(row.op))
          t->programs.push_back(static_cast<uint16_t>(i));
      if (t->programs.empty()) continue;
      t->words = (t->programs.size() + 63) / 64;
      for (size_t p = 0; p < 3; ++p) build_position(*t, p, programs);
      build_domains(*t, programs);
      t->by_first_source = has_trait(row.op, kBoolResult);
      by_op[static_cast<uint8_t>(row.op)] = std::move(t);
    }
  }

  NodeRef fire(const RuleProgram& program, NodeRef n, RuleMatcher::Call& call,
               bool keeps_type) const {
    NodeRef reg[Pat::kMaxNodes];
    if (!run(program, {steps.data() + program.first_step, program.steps}, n, reg)) return nullptr;
    Match m{call.graph, n, {}};
    if (!bind(program, reg, m)) return nullptr;
    const Rule& rule = *program.entry->rule;
    if (!condition_holds(rule.cond, m, call.context_calls)) return nullptr;
    NodeRef out = program.entry->is_native() ? program.entry->call(program.entry->fn, m, call.ctx)
                                             : build_replacement(rule.rhs, m, call.context_calls);
    if (!out || out == n) return nullptr;
    if (!keeps_type) return out;
    if (out->dtype != n->dtype)
      internal_error("rewrite.dtype", "rule {} made {} of {}: {} -> {}", rule.name,
                     name(out->dtype), name(n->dtype), expression(n), expression(out));
    out = with_shape_of(call.graph, out, n);
    return out == n ? nullptr : out;
  }
};

RuleMatcher::RuleMatcher(std::string name, std::span<const RuleEntry> entries,
                         const RuleSetOptions& options)
    : name_(std::move(name)),
      entries_(entries.begin(), entries.end()),
      options_(options),
      table_(new RuleTable) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Rule& rule = *entries_[i].rule;
    if (is_switched_off(rule.name, options.switched_off)) continue;
    auto domain = static_cast<uint8_t>(rule.domain);
    if (!options.real) domain &= static_cast<uint8_t>(~static_cast<uint8_t>(Domain::Real));
    if (domain != 0) table_->add(entries_[i], i, static_cast<Domain>(domain));
  }
  table_->index();
}
RuleMatcher::~RuleMatcher() = default;

size_t RuleMatcher::program_count() const { return table_->programs.size(); }
size_t RuleMatcher::capped_count() const { return table_->capped; }
bool RuleMatcher::concerns(Op op) const {
  return table_->by_op[static_cast<uint8_t>(op)] != nullptr;
}

NodeRef RuleMatcher::apply(NodeRef n, Call& call) const {
  const OpTable* t = table_->by_op[static_cast<uint8_t>(n->op)].get();
  if (!t) return nullptr;
  const uint64_t* bits[3];
  for (size_t p = 0; p < 3; ++p) {
    const PositionTable& table = t->position[p];
    bits[p] = table.bits.data() + table.class_of[n->src_op[p]] * t->words;
  }
  const DType operands = t->by_first_source ? n->src(0)->dtype : n->dtype;
  const uint64_t* of_domain = t->of_domain.data() + domain_index(operands) * t->words;
  const bool same = n->nsrc >= 2 && n->src(0) == n->src(1);
  for (size_t w = 0; w < t->words; ++w) {
    uint64_t candidates = bits[0][w] & bits[1][w] & bits[2][w] & of_domain[w];
    if (!same) candidates &= ~t->same_sources[w];
    for (; candidates; candidates &= candidates - 1) {
      const size_t k = w * 64 + static_cast<size_t>(std::countr_zero(candidates));
      const RuleProgram& program = table_->programs[t->programs[k]];
      const uint64_t start = call.counts ? now_ns() : 0;
      NodeRef out = table_->fire(program, n, call, options_.keeps_type);
      if (call.counts) {
        RuleCounts& c = call.counts[program.rule_index];
        ++c.tried;
        c.fired += out != nullptr;
        c.ns += now_ns() - start;
      }
      if (!out) continue;
      call.fired = program.rule_index;
      return out;
    }
  }
  return nullptr;
}

}  // namespace weft
