// Control, memory and constants.
#include "weft/codegen/x86/select.h"

#include <algorithm>
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/codegen/x86/prefetch.h"
#include "weft/codegen/x86/selector.h"
#include "weft/target/kernel_abi.h"

namespace weft::codegen {
MachineProgram select_x86(const LinearProgram& program, const Target& target) {
  MachineProgram code = X86Selector(program, target).run();
  prefetch_after_loops(code, x86::instruction_set(target.vector_bits == 512));
  spread_prefetches(code);
  return code;
}

MachineProgram X86Selector::run() {
  enter();
  const size_t entry_end = out_.code.size();
  reserve_local();
  find_conditions();
  count_readers();
  for (NodeRef n : program_.code)
    if (!is_condition(n)) select(n);
  if (uses_tiles_) emit(Form::Tilerelease, 0, {});
  return finish(entry_end);
}

/// Arguments, and from there the addresses of buffers and the values of variables.
void X86Selector::enter() {
  const Reg args = general(), begin = general(), end = general();
  const Reg arguments[] = {args, begin, end};
  for (size_t i = 0; i < std::size(arguments); ++i)
    out_.of(arguments[i]).fixed = x86::kArguments[i];
  const Reg block = copied(args);
  begin_ = general(), end_ = general();
  emit(Form::Mov, 32, {begin_, begin});  // 32 bits: the upper ones are whatever the caller had
  emit(Form::Mov, 32, {end_, end});
  auto pointer = [this](Reg base, size_t offset) {
    const Reg r = general();
    emit(x86::make(Form::MovLoad, 64, {r},
                   Address{.base = base, .displacement = static_cast<int32_t>(offset)}));
    return r;
  };
  const Reg buffers = pointer(block, offsetof(KernelArgs, buffers));
  for (NodeRef n : program_.code)
    if (n->op == Op::Param)
      values_.set(n, pointer(buffers, 8 * static_cast<size_t>(param_slot(n))));
  if (program_.variables.empty()) return;
  const Reg vars = pointer(block, offsetof(KernelArgs, vars));
  for (size_t i = 0; i < program_.variables.size(); ++i)
    values_.set(program_.variables[i], pointer(vars, 8 * i));
}

void X86Selector::select(NodeRef n) {
  scratch_top_ = local_bytes_;
  if (ends_stretch_) ++stretch_, prefetched_.clear();
  ends_stretch_ = n->op == Op::Store || n->op == Op::Range || n->op == Op::EndRange ||
                  n->op == Op::If || n->op == Op::EndIf;
  if (n->op == Op::Load) loaded_in_.set(n, stretch_);
  if (const Ahead* ahead = ahead_.find(n)) prefetch(n, *ahead);
  const NodeRef subject = n->op == Op::Store ? n->src(2) : n->op == Op::SetAcc ? n->src(1) : n;
  if (is_tile(subject)) return select_tile(n);
  if (subject->lanes > 1) return select_vector(n);
  switch (n->op) {
    case Op::Local: values_.set(n, local_); return;
    case Op::Barrier:  // there is one item
    case Op::Param:
    case Op::Variable: return;
    case Op::Range: return open_range(n);
    case Op::EndRange: return close_range();
    case Op::If: return ifs_.push_back(skip_unless(n->src(0)));
    case Op::EndIf: place(ifs_.back()); return ifs_.pop_back();
    case Op::Store: return store(n);
    case Op::SetAcc: return copy(value(n->src(0)), value(n->src(1)), n->src(1)->dtype);
    default: values_.set(n, compute(n));
  }
}

Reg X86Selector::compute(NodeRef n) {
  switch (n->op) {
    case Op::Const: return constant(n);
    case Op::Load: return load(n);
    case Op::Acc:
    case Op::GetAcc: {
      const Reg r = fresh(n->dtype);
      copy(r, value(n->src(0)), n->dtype);
      return r;
    }
    case Op::Lane: return lane(n->src(0), static_cast<int>(n->int_arg(0)));
    case Op::Cast: return cast(n);
    case Op::Bitcast: return bitcast(n);
    case Op::Where: return in_vector(n->dtype) ? float_where(n) : integer_where(n);
    case Op::Lt:
    case Op::Le:
    case Op::Eq:
    case Op::Ne:
      if (in_vector(n->src(0)->dtype)) return float_comparison(n);
      return is_bool(n->src(0)->dtype) ? bool_op(n) : set_if(compare(n));
    default: break;
  }
  if (in_vector(n->dtype)) return float_op(n);
  return is_bool(n->dtype) ? bool_op(n) : integer_op(n);
}

// ---- control

void X86Selector::open_range(NodeRef n) {
  const bool core = range_binding(n) == Binding::Core;
  if (!core && n->src(0)->op != Op::Const && n->src(0)->vmax == 1) {  // one iteration or none
    values_.set(n, integer(0));
    return loops_.push_back({.end = skip_unless(n->src(0))});
  }
  const bool known = !core && n->src(0)->op == Op::Const;
  OpenLoop loop{core ? copied(begin_) : integer(0), kNoReg, 0, new_label(), new_label()};
  if (core)
    loop.limit = end_;
  else if (known && n->src(0)->vmax <= INT32_MAX)
    loop.size = n->src(0)->vmax;
  else
    loop.limit = value(n->src(0));
  values_.set(n, loop.counter);
  if (loop.limit != kNoReg || loop.size <= 0) {
    compare_with_limit(loop);
    jump(Form::Jcc, loop.end, x86::kGreaterEqual);
  }
  emit(Instruction{.form = kLoopBegin, .immediate = std::max<int64_t>(0, loop.size)});
  place(loop.top);
  loops_.push_back(loop);
}

void X86Selector::close_range() {
  const OpenLoop loop = loops_.back();
  loops_.pop_back();
  if (loop.counter == kNoReg) return place(loop.end);
  emit(Form::AddI, 64, {loop.counter}, 1);
  compare_with_limit(loop);
  jump(Form::Jcc, loop.top, x86::kLess);
  emit(Instruction{.form = kLoopEnd});
  place(loop.end);
}

void X86Selector::compare_with_limit(const OpenLoop& loop) {
  if (loop.limit != kNoReg)
    emit(Form::Cmp, 64, {loop.counter, loop.limit});
  else
    emit(Form::CmpI, 64, {loop.counter}, loop.size);
}

// ---- memory

Address X86Selector::address_of(NodeRef param, NodeRef index) {
  const int64_t size = bits(param->dtype) / 8;
  Address a{.base = value(param), .scale = static_cast<uint8_t>(size)};
  const int32_t local = param->op == Op::Local ? local_at_.at(param->int_arg(0)) : 0;
  auto fits = [](NodeRef n) {
    return n->op == Op::Const && n->vmin > -(int64_t{1} << 27) && n->vmin < (int64_t{1} << 27);
  };
  if (index->op == Op::Add && fits(index->src(1))) {
    a.displacement = static_cast<int32_t>(index->src(1)->vmin * size);
    index = index->src(0);
  }
  if (fits(index))
    a.displacement += static_cast<int32_t>(index->vmin * size);
  else
    a.index = value(index);
  a.displacement += local;
  return a;
}

bool X86Selector::may_read_again(NodeRef n) const {
  return n->op == Op::Load && n->nsrc == 2 && loaded_in_.at(n) == stretch_;
}

Reg X86Selector::load(NodeRef n) {
  const Reg to = fresh(n->dtype);
  int32_t end = -1;
  if (n->nsrc == 3) {
    if (in_vector(n->dtype))
      copy(to, float_constant(0, n->dtype), n->dtype);
    else
      emit(Form::MovI, 64, {to}, 0);
    end = skip_unless(n->src(2));
  }
  load_scalar_into(to, n->dtype, address_of(n->src(0), n->src(1)));
  if (end >= 0) place(end);
  return to;
}

/// From the beginning of what is read in the next item, whichever part of it `n` is.
void X86Selector::prefetch_lines(NodeRef n, const Ahead& ahead) {
  Address at = address_of(n->src(0), n->src(1));
  at.displacement += static_cast<int32_t>(ahead.bytes - at.displacement % ahead.bytes);
  const Reg begin = general(), further = general();
  emit(x86::make(Form::Lea, 64, {begin}, at));
  emit(Form::ImulI, 64, {further, value(ahead.loop)}, ahead.apart);
  for (int64_t line = 0; line < ahead.lines; ++line)
    emit(x86::make(ahead.later ? Form::Prefetcht1 : Form::Prefetcht0, 8, {},
                   Address{.base = begin,
                           .index = further,
                           .displacement = static_cast<int32_t>(line * Machine::kLine)}));
}

void X86Selector::prefetch(NodeRef n, const Ahead& ahead) {
  if (ahead.lines > 0) return prefetch_lines(n, ahead);
  Address at = address_of(n->src(0), n->src(1));
  at.displacement += static_cast<int32_t>(ahead.bytes);
  const bool known = std::ranges::any_of(prefetched_, [&](const Address& a) {
    return a.base == at.base && a.index == at.index && a.scale == at.scale &&
           std::abs(a.displacement - at.displacement) < Machine::kLine / 2;
  });
  if (known) return;
  prefetched_.push_back(at);
  emit(x86::make(ahead.later ? Form::Prefetcht1 : Form::Prefetcht0, 8, {}, at));
}

void X86Selector::count_readers() {
  for (NodeRef n : program_.code)
    for (NodeRef x : n->src())
      if (x->lanes == 1 && (x->op == Op::Load || x->op == Op::Add)) ++readers_[x];
}

/// What is added to the integer that lies where `store` puts the sum, which nobody else looks at;
/// null where it stores anything else.
NodeRef X86Selector::added_in_place(NodeRef store) const {
  NodeRef sum = store->src(2);
  if (sum->op != Op::Add || in_vector(sum->dtype) || bits(sum->dtype) < 32) return nullptr;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    NodeRef x = sum->src(i);
    if (x->op != Op::Load || loaded_in_.at(x) != stretch_) continue;
    const bool here = x->src(0) == store->src(0) && x->src(1) == store->src(1);
    const bool whenever = x->nsrc == 2 || (store->nsrc > 3 && x->src(2) == store->src(3));
    if (here && whenever && readers_.at(x) == 1 && readers_.at(sum) == 1) return sum->src(1 - i);
  }
  return nullptr;
}

void X86Selector::store(NodeRef n) {
  const int32_t end = n->nsrc > 3 ? skip_unless(n->src(3)) : -1;
  const DType dtype = n->src(2)->dtype;
  const Address to = address_of(n->src(0), n->src(1));
  if (NodeRef x = added_in_place(n))
    emit(x86::make(Form::Add, bits(dtype), {kNoReg, low_bits(value(x), dtype)}, to));
  else
    store_scalar(dtype, low_bits(value(n->src(2)), dtype), to);
  if (end >= 0) place(end);
}

Reg X86Selector::constant(NodeRef n) {
  const Value v = const_value(n);
  if (in_vector(n->dtype)) return float_constant(v.as_double(), n->dtype);
  if (!is_half(n->dtype))
    return integer(is_unsigned(n->dtype) ? static_cast<int64_t>(v.as_uint()) : v.as_int());
  uint16_t raw = 0;
  v.store(&raw);
  return integer(raw);
}

}  // namespace weft::codegen
