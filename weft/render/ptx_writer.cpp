#include "weft/render/ptx_writer.h"

#include "weft/base/error.h"
#include "weft/render/scopes.h"

namespace weft {

namespace {

struct BankRow {
  std::string_view prefix, type;
};
// By PtxBank.
constexpr BankRow kBanks[] = {{"%p", ".pred"}, {"%h", ".b16"}, {"%r", ".b32"}, {"%d", ".b64"}};

/// Bounds are computed before wrapping; where the value could wrap they are the whole dtype's.
bool may_wrap(NodeRef n) {
  return n->vmin <= int_min(n->dtype) || n->vmax >= static_cast<int64_t>(int_max(n->dtype));
}

}  // namespace

PtxWriter::PtxWriter(const LinearProgram& program, const RenderOptions& options)
    : program_(program), options_(options), values_(program.code.size()) {}

void PtxWriter::write() {
  escaping_ = escaping_values(program_);
  find_needed();
  write_arguments();
  if (!program_.launch.grouped) write_item();
  for (NodeRef n : program_.code)
    if (!is_program_leaf(n) && (n->op != Op::Add || needed_.contains(n))) write_node(n);
  WEFT_CHECK(blocks_.empty(), "{}: a loop or guard is not closed", program_.name);
  statement("ret");
}

std::string PtxWriter::declarations() const {
  std::string text;
  for (size_t i = 0; i < registers_.size(); ++i)
    if (registers_[i] > 0)
      append_format(text, "  .reg {} {}<{}>;\n", kBanks[i].type, kBanks[i].prefix, registers_[i]);
  return text;
}

std::string PtxWriter::fresh(PtxBank bank) {
  const auto i = static_cast<size_t>(bank);
  return strformat("{}{}", kBanks[i].prefix, registers_[i]++);
}

std::string PtxWriter::fresh(DType dtype) { return fresh(ptx_kind(dtype).bank); }

// One that is used outside of its block has a value there for the block that never runs.
std::string PtxWriter::result(NodeRef n, DType dtype) {
  if (const Held* known = values_.find(n)) return known->text;
  const std::string name = fresh(dtype);
  if (escaping_.contains(n)) body_.declare(strformat("mov.{} {}, 0;", ptx_kind(dtype).bits, name));
  values_.set(n, {dtype, name});
  return name;
}

// ---- what a work item is given

void PtxWriter::write_arguments() {
  for (size_t i = 0; i < program_.params.size(); ++i) {
    params_.push_back(fresh(PtxBank::Long));
    statement(strformat("ld.param.u64 {}, [p{}]", params_[i], i));
    statement(strformat("cvta.to.global.u64 {}, {}", params_[i], params_[i]));
  }
  for (size_t i = 0; i < program_.variables.size(); ++i) {
    const NodeRef variable = program_.variables[i];
    const std::string given = fresh(PtxBank::Long), name = fresh(variable->dtype);
    statement(strformat("ld.param.u64 {}, [var{}]", given, i));
    cast(name, given, DType::I64, variable->dtype);
    values_.set(variable, {variable->dtype, name});
  }
  for (NodeRef n : local_arrays(program_)) {
    const std::string begin = fresh(PtxBank::Word);
    statement(strformat("mov.u32 {}, l{}", begin, n->int_arg(0)));
    locals_.emplace(n->int_arg(0), begin);
  }
}

void PtxWriter::write_item() {
  const std::string group = fresh(PtxBank::Word), size = fresh(PtxBank::Word);
  const std::string end = fresh(PtxBank::Word), outside = fresh(PtxBank::Predicate);
  item_ = fresh(PtxBank::Word);
  statement(strformat("mov.u32 {}, %ctaid.x", group));
  statement(strformat("mov.u32 {}, %ntid.x", size));
  statement(strformat("mov.u32 {}, %tid.x", item_));
  statement(strformat("mad.lo.u32 {}, {}, {}, {}", item_, group, size, item_));
  statement(strformat("ld.param.u32 {}, [begin]", size));
  statement(strformat("add.u32 {}, {}, {}", item_, item_, size));
  statement(strformat("ld.param.u32 {}, [end]", end));
  statement(strformat("setp.ge.u32 {}, {}, {}", outside, item_, end));
  statement(strformat("@{} ret", outside));
}

// ---- instructions

void PtxWriter::write_node(NodeRef n) {
  WEFT_CHECK(n->lanes == 1, "{}: {} of {} lanes, and PTX has no vectors of any length",
             program_.name, info(n->op).mnemonic, n->lanes);
  switch (n->op) {
    case Op::Range: return write_range(n);
    case Op::If: return write_if(n);
    case Op::EndRange:
    case Op::EndIf: return close();
    case Op::Load: return write_load(n);
    case Op::Store: return write_store(n);
    case Op::WorkId: return write_work_id(n);
    case Op::Barrier: return statement("bar.sync 0");
    case Op::Shuffle: return write_shuffle(n);
    case Op::Acc: return write_acc(n);
    case Op::SetAcc: {
      const Held acc = held(n->src(0));
      return move(acc.text, operand(n->src(1)), acc.dtype);
    }
    case Op::GetAcc: {
      const Held acc = held(n->src(0));
      return move(result(n, acc.dtype), acc.text, acc.dtype);
    }
    case Op::Cast:
    case Op::Bitcast: {
      // One after the other: both may take registers, and arguments have no order.
      const std::string x = in_register(n->src(0)), d = result(n, n->dtype);
      if (n->op == Op::Cast) return cast(d, x, n->src(0)->dtype, n->dtype);
      return bitcast(d, x, n->src(0)->dtype, n->dtype);
    }
    case Op::Sink: return;
    default: return write_alu(n);
  }
}

void PtxWriter::write_work_id(NodeRef n) {
  const bool grid = static_cast<Binding>(n->int_arg(0)) == Binding::Grid;
  const std::string id = fresh(PtxBank::Word);
  statement(strformat("mov.u32 {}, %{}.{}", id, grid ? "ctaid" : "tid", "xyz"[n->int_arg(1)]));
  cast(result(n, n->dtype), id, DType::U32, n->dtype);
}

// A work item runs one item of the core range, which has been compared with the last. Other loops
// test at their end; one that may run never is stepped over.
void PtxWriter::write_range(NodeRef n) {
  const std::string counter = result(n, n->dtype);
  if (range_binding(n) == Binding::Core) {
    cast(counter, item_, DType::U32, n->dtype);
    return open({});
  }
  Block loop{fresh_label(), fresh_label(), counter, operand(n->src(0)), n->dtype, {}};
  move(counter, "0", n->dtype);
  if (n->src(0)->vmin < 1) {
    const std::string none = fresh(PtxBank::Predicate);
    statement(strformat("setp.le.{} {}, {}, 0", ptx_kind(n->dtype).type, none, loop.limit));
    statement(strformat("@{} bra {}", none, loop.end));
  }
  label(loop.top);
  open(std::move(loop));
}

void PtxWriter::write_if(NodeRef n) {
  Block guarded{"", fresh_label(), "", "", DType::Void, {}};
  statement(strformat("@!{} bra {}", in_register(n->src(0)), guarded.end));
  open(std::move(guarded));
}

void PtxWriter::open(Block block) {
  block.outside = addresses_;
  blocks_.push_back(std::move(block));
}

void PtxWriter::close() {
  const Block block = std::move(blocks_.back());
  blocks_.pop_back();
  addresses_ = block.outside;
  if (!block.top.empty()) {
    const std::string_view type = ptx_kind(block.dtype).type;
    const std::string again = fresh(PtxBank::Predicate);
    statement(strformat("add.{} {}, {}, 1", type, block.counter, block.counter));
    statement(strformat("setp.lt.{} {}, {}, {}", type, again, block.counter, block.limit));
    statement(strformat("@{} bra {}", again, block.top));
  }
  if (!block.end.empty()) label(block.end);
}

void PtxWriter::write_acc(NodeRef n) {
  const Held init = held(n->src(0));
  move(result(n, init.dtype), init.text, init.dtype);
}

// What all lanes of a warp come to, whatever their number: lanes beyond 31 there are none ("Data
// Movement and Conversion Instructions: shfl.sync").
void PtxWriter::write_shuffle(NodeRef n) {
  const std::string x = in_register(n->src(0)), d = result(n, n->dtype);
  const auto exchange = [&](const std::string& to, const std::string& from) {
    statement(strformat("shfl.sync.bfly.b32 {}, {}, {}, 31, 0xFFFFFFFF", to, from, n->int_arg(0)));
  };
  if (ptx_kind(n->dtype).bank == PtxBank::Word) return exchange(d, x);
  WEFT_CHECK(ptx_kind(n->dtype).bank == PtxBank::Long, "{}: a shuffle of {}", program_.name,
             name(n->dtype));
  const std::string low = fresh(PtxBank::Word), high = fresh(PtxBank::Word);
  statement(strformat("mov.b64 {{{}, {}}}, {}", low, high, x));
  exchange(low, low);
  exchange(high, high);
  statement(strformat("mov.b64 {}, {{{}, {}}}", d, low, high));
}

// ---- memory

// Constants become part of the instruction, so that neighbours share the rest: assemblers cannot
// know that it does not wrap.
PtxWriter::Place PtxWriter::place(NodeRef index, int64_t size) const {
  Place p{index, 0};
  while (p.rest->op == Op::Add && is_const(p.rest->src(1)) && !may_wrap(p.rest) &&
         !escaping_.contains(p.rest) && !escaping_.contains(p.rest->src(0))) {
    p.offset += const_value(p.rest->src(1)).as_int() * size;
    p.rest = p.rest->src(0);
  }
  if (is_const(p.rest)) p = {nullptr, p.offset + const_value(p.rest).as_int() * size};
  return p.offset == static_cast<int32_t>(p.offset) ? p : Place{index, 0};
}

// Sums that are nothing but an index and a constant need no register: backwards, so that uses are
// met before what they use.
void PtxWriter::find_needed() {
  for (auto n = program_.code.rbegin(); n != program_.code.rend(); ++n) {
    if ((*n)->op == Op::Add && !needed_.contains(*n)) continue;
    const bool access = (*n)->op == Op::Load || (*n)->op == Op::Store;
    for (size_t k = 0; k < (*n)->nsrc; ++k) {
      NodeRef used = (*n)->src(k);
      if (access && k == 1) used = place(used, bytes_for((*n)->src(0)->dtype, 1)).rest;
      if (used) needed_.set(used, true);
    }
  }
}

std::string PtxWriter::place_address(NodeRef array, NodeRef rest, int64_t size) {
  const bool local = array->op == Op::Local;
  const std::string base =
      local ? locals_.at(array->int_arg(0)) : params_[static_cast<size_t>(param_slot(array))];
  if (rest == nullptr) return base;
  const auto known = addresses_.find({base, rest});
  if (known != addresses_.end()) return known->second;
  std::string index = operand(rest);
  const bool is_long = ptx_kind(rest->dtype).bank == PtxBank::Long;
  if (local && is_long) {
    const std::string low = fresh(PtxBank::Word);
    cast(low, in_register(rest), rest->dtype, DType::I32);
    index = low;
  }
  const std::string begin = fresh(local ? PtxBank::Word : PtxBank::Long);
  const std::string_view form = local ? "lo.s32" : is_long ? "lo.s64" : "wide.s32";
  statement(strformat("mad.{} {}, {}, {}, {}", form, begin, index, size, base));
  // What is computed in several places is not the same everywhere.
  if (!escaping_.contains(rest)) addresses_[{base, rest}] = begin;
  return begin;
}

std::string PtxWriter::address(NodeRef array, NodeRef index) {
  const bool local = array->op == Op::Local;
  WEFT_CHECK(local || array->op == Op::Param, "{}: an access to something that is no param",
             program_.name);
  WEFT_CHECK(local || static_cast<size_t>(param_slot(array)) < params_.size(),
             "{}: param {} is not declared", program_.name, param_slot(array));
  const int64_t size = bytes_for(array->dtype, 1);
  const Place at = place(index, size);
  const std::string begin = place_address(array, at.rest, size);
  return at.offset == 0 ? strformat("[{}]", begin) : strformat("[{}+{}]", begin, at.offset);
}

std::string_view PtxWriter::store_space(NodeRef array) const {
  return array->op == Op::Local ? "shared" : "global";
}

// Through the cache that does not see what the kernel writes ("ld.global.nc"): what it only reads.
std::string_view PtxWriter::load_space(NodeRef array) const {
  if (array->op == Op::Local) return "shared";
  const ProgramParam& param = program_.params[static_cast<size_t>(param_slot(array))];
  return options_.distinct_params && !param.written ? "global.nc" : "global";
}

void PtxWriter::write_load(NodeRef n) {
  const std::string at = address(n->src(0), n->src(1)), d = result(n, n->dtype);
  const std::string to = is_bool(n->dtype) ? fresh(PtxBank::Word) : d;
  std::string guard;
  if (n->nsrc > 2) {
    guard = strformat("@{} ", in_register(n->src(2)));
    statement(strformat("mov.{} {}, 0", is_bool(n->dtype) ? "b32" : ptx_kind(n->dtype).bits, to));
  }
  statement(
      strformat("{}ld.{}.{} {}, {}", guard, load_space(n->src(0)), ptx_element(n->dtype), to, at));
  if (is_bool(n->dtype)) statement(strformat("setp.ne.u32 {}, {}, 0", d, to));
}

void PtxWriter::write_store(NodeRef n) {
  const Held value = held(n->src(2));
  std::string stored = value.text;
  if (is_bool(value.dtype))
    cast(stored = fresh(PtxBank::Word), in_register(n->src(2)), DType::Bool, DType::U8);
  const std::string at = address(n->src(0), n->src(1));
  const std::string guard = n->nsrc > 3 ? strformat("@{} ", in_register(n->src(3))) : "";
  statement(strformat("{}st.{}.{} {}, {}", guard, store_space(n->src(0)), ptx_element(value.dtype),
                      at, stored));
}

// ---- values

const PtxWriter::Held& PtxWriter::held(NodeRef n) {
  if (const Held* known = values_.find(n)) return *known;
  if (n->op == Op::Const) return values_.set(n, {n->dtype, ptx_literal(const_value(n))});
  internal_error("render.ptx", "{}: {} is used before it is computed", program_.name,
                 info(n->op).mnemonic);
}

std::string PtxWriter::in_register(NodeRef n) {
  const Held x = held(n);
  if (x.text.starts_with('%')) return x.text;
  std::string name = fresh(x.dtype);
  move(name, x.text, x.dtype);
  return name;
}

void PtxWriter::move(const std::string& to, const std::string& from, DType dtype) {
  statement(strformat("mov.{} {}, {}", ptx_kind(dtype).type, to, from));
}

}  // namespace weft
