// Decoding and control flow.
#include "weft/device/interp.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "weft/base/error.h"
#include "weft/graph/node_map.h"

namespace weft::interp {

namespace {

constexpr size_t kLine = 64;

template <class T>
const Instr* enter_range(const Instr* i, Frame& f) {  // out: counter, a: size
  *at<T>(f, i->out) = 0;
  return *at<T>(f, i->a) > 0 ? i + 1 : i + i->jump;
}
template <class T>
const Instr* next_range(const Instr* i, Frame& f) {
  T& counter = *at<T>(f, i->out);
  return ++counter < *at<T>(f, i->a) ? i + i->jump : i + 1;
}
template <class T>
const Instr* enter_core(const Instr* i, Frame& f) {
  *at<T>(f, i->out) = static_cast<T>(f.begin);
  return f.begin < f.end ? i + 1 : i + i->jump;
}
template <class T>
const Instr* next_core(const Instr* i, Frame& f) {
  T& counter = *at<T>(f, i->out);
  return ++counter < static_cast<T>(f.end) ? i + i->jump : i + 1;
}
const Instr* enter_if(const Instr* i, Frame& f) {
  return *at<uint8_t>(f, i->a) != 0 ? i + 1 : i + i->jump;
}
const Instr* copy_bytes(const Instr* i, Frame& f) {
  std::memcpy(f.slots + i->out, f.slots + i->a, i->n);
  return i + 1;
}
template <class T>
const Instr* move(const Instr* i, Frame& f) {
  *at<T>(f, i->out) = *at<T>(f, i->a);
  return i + 1;
}
template <class T>
const Instr* splat(const Instr* i, Frame& f) {
  const T x = *at<T>(f, i->a);
  std::fill_n(at<T>(f, i->out), i->n, x);
  return i + 1;
}
template <class T>
const Instr* read_variable(const Instr* i, Frame& f) {
  *at<T>(f, i->out) = static_cast<T>(f.args->vars[i->slot]);
  return i + 1;
}
const Instr* stop(const Instr*, Frame&) { return nullptr; }

uint32_t bytes_of(NodeRef n) { return static_cast<uint32_t>(bits(n->dtype) / 8 * n->lanes); }
uint32_t width_of(NodeRef n) { return static_cast<uint32_t>(bits(n->dtype) / 8); }

}  // namespace

class Decoder {
 public:
  Decoder(const LinearProgram& source, Program& program) : source_(source), program_(program) {}

  void decode() {
    for (NodeRef n : source_.code) reserve_constants(n);
    program_.constants_.resize(next_);
    for (const auto& [n, offset] : constants_)
      for (uint32_t k = 0; k < n->lanes; ++k)
        const_value(n).store(program_.constants_.data() + offset + k * width_of(n));
    for (size_t i = 0; i < source_.variables.size(); ++i) {
      NodeRef v = source_.variables[i];
      Instr& instr = emit(bits(v->dtype) == 32 ? read_variable<int32_t> : read_variable<int64_t>);
      instr.out = slot(v);
      instr.slot = static_cast<uint32_t>(i);
    }
    for (NodeRef n : source_.code) decode(n);
    WEFT_CHECK(blocks_.empty(), "{}: a loop or guard is not closed", source_.name);
    emit(stop);
    program_.frame_bytes_ = (next_ + kLine - 1) / kLine * kLine;
  }

 private:
  // Constants come first, so that preparing a frame is one copy; also those only named as operands.
  void reserve_constants(NodeRef n) {
    const auto add = [&](NodeRef c) {
      if (c->op == Op::Const && !slots_.contains(c)) constants_.emplace_back(c, slot(c));
    };
    add(n);
    for (NodeRef s : n->src()) add(s);
  }

  Instr& emit(Step step) {
    WEFT_CHECK(step != nullptr, "{}: an instruction the interpreter does not have", source_.name);
    program_.code_.push_back({step});
    return program_.code_.back();
  }

  uint32_t allocate(size_t bytes) {
    // Scalars keep together; a vector starts a line of its own.
    const size_t align = bytes > 8 ? kLine : 8;
    const size_t offset = (next_ + align - 1) & ~(align - 1);
    next_ = offset + std::max<size_t>(bytes, 8);
    WEFT_CHECK(next_ < (size_t{1} << 31), "{}: too many values", source_.name);
    return static_cast<uint32_t>(offset);
  }
  uint32_t slot(NodeRef n) {
    if (const uint32_t* known = slots_.find(n)) return *known;
    return slots_.set(n, allocate(bytes_of(n)));
  }
  uint32_t operand(NodeRef n) {
    const uint32_t* known = slots_.find(n);
    WEFT_CHECK(known != nullptr, "{}: {} is used before it is computed", source_.name,
               info(n->op).mnemonic);
    return *known;
  }

  void decode(NodeRef n) {
    switch (n->op) {
      case Op::Const:
      case Op::Param:
      case Op::Variable:
      case Op::Sink: return;
      case Op::Range: return open_range(n);
      case Op::If: {
        Instr& i = emit(enter_if);
        i.a = operand(n->src(0));
        blocks_.push_back({n, program_.code_.size() - 1});
        return;
      }
      case Op::EndRange: return close_range(n);
      case Op::EndIf: return close_if();
      case Op::Load: return load(n);
      case Op::Store: return store(n);
      case Op::Acc:
      case Op::GetAcc: return copy(slot(n), operand(n->src(0)), bytes_of(n));
      case Op::SetAcc: return copy(operand(n->src(0)), operand(n->src(1)), bytes_of(n->src(0)));
      case Op::Vec: return pack(n);
      case Op::Lane: {
        const auto k = static_cast<uint32_t>(n->int_arg(0));
        return copy(slot(n), operand(n->src(0)) + k * width_of(n), width_of(n));
      }
      case Op::Splat: return spread(n);
      case Op::Trn: return take_turns(n);
      case Op::Bitcast:
        if (is_bool(n->dtype)) return cast(n, DType::U8);
        return copy(slot(n), operand(n->src(0)), bytes_of(n));
      case Op::Cast: return cast(n, n->src(0)->dtype);
      default: return alu(n);
    }
  }

  void pack(NodeRef n) {
    const uint32_t out = slot(n), width = width_of(n);
    for (uint32_t k = 0; k < n->nsrc; ++k) copy(out + k * width, operand(n->src(k)), width);
  }

  void take_turns(NodeRef n) {
    const auto size = static_cast<uint32_t>(n->int_arg(0)),
               odd = static_cast<uint32_t>(n->int_arg(1));
    const uint32_t out = slot(n), width = width_of(n);
    for (uint32_t k = 0; k < n->lanes; k += 2 * size)
      for (const uint32_t i : {0U, 1U})
        copy(out + (k + i * size) * width, operand(n->src(i)) + (k + odd * size) * width,
             size * width);
  }

  void copy(uint32_t to, uint32_t from, uint32_t bytes) {
    Instr& i = emit(bytes == 1   ? move<uint8_t>
                    : bytes == 2 ? move<uint16_t>
                    : bytes == 4 ? move<uint32_t>
                    : bytes == 8 ? move<uint64_t>
                                 : copy_bytes);
    i.out = to, i.a = from, i.n = bytes;
  }

  void spread(NodeRef n) {
    const uint32_t width = width_of(n);
    Instr& i = emit(width == 1   ? splat<uint8_t>
                    : width == 2 ? splat<uint16_t>
                    : width == 4 ? splat<uint32_t>
                                 : splat<uint64_t>);
    i.a = operand(n->src(0)), i.n = n->lanes, i.out = slot(n);
  }

  void cast(NodeRef n, DType from) {
    Instr& i = emit(cast_step(from, n->dtype));
    i.a = operand(n->src(0)), i.n = n->lanes, i.out = slot(n);
  }

  void alu(NodeRef n) {
    const DType dtype = n->src(n->op == Op::Where ? 1 : 0)->dtype;
    const Step step = alu_step(n->op, dtype, n->lanes == 1);
    if (step == nullptr) {
      internal_error("device.interp", "{}: {} on {} is not known; lower/ should have decomposed it",
                     source_.name, info(n->op).mnemonic, name(dtype));
    }
    uint32_t sources[3] = {};
    for (uint32_t k = 0; k < n->nsrc && k < 3; ++k)
      sources[k] = vector_operand(n->src(k), n->lanes);
    Instr& i = emit(step);
    i.a = sources[0], i.b = sources[1], i.c = sources[2], i.n = n->lanes, i.out = slot(n);
  }

  // A scalar given where lanes are wanted is spread where it is used.
  uint32_t vector_operand(NodeRef n, uint32_t lanes) {
    if (lanes == 1 || n->lanes == lanes) return operand(n);
    const uint32_t width = width_of(n), from = operand(n), to = allocate(width * lanes);
    for (uint32_t k = 0; k < lanes; ++k) copy(to + k * width, from, width);
    return to;
  }

  uint32_t checked_param(NodeRef param) {
    WEFT_CHECK(
        param->op == Op::Param && static_cast<size_t>(param_slot(param)) < source_.params.size(),
        "{}: an access to something that is no param", source_.name);
    return static_cast<uint32_t>(param_slot(param));
  }

  void load(NodeRef n) {
    NodeRef valid = n->nsrc > 2 ? n->src(2) : nullptr;
    Instr& i = emit(load_step(n->dtype, n->src(1)->dtype, valid != nullptr));
    i.out = slot(n), i.a = operand(n->src(1)), i.n = n->lanes, i.slot = checked_param(n->src(0));
    if (valid != nullptr) i.b = operand(valid);
  }

  void store(NodeRef n) {
    NodeRef value = n->src(2), valid = n->nsrc > 3 ? n->src(3) : nullptr;
    const uint32_t from = vector_operand(value, n->lanes > value->lanes ? n->lanes : value->lanes);
    Instr& i = emit(store_step(value->dtype, n->src(1)->dtype, valid != nullptr));
    i.a = operand(n->src(1)), i.c = from, i.n = value->lanes, i.slot = checked_param(n->src(0));
    if (valid != nullptr) i.b = operand(valid);
  }

  static bool is_core(NodeRef n) { return range_binding(n) == Binding::Core; }

  void open_range(NodeRef n) {
    const bool narrow = bits(n->dtype) == 32, core = is_core(n);
    Instr& i = emit(core ? (narrow ? enter_core<int32_t> : enter_core<int64_t>)
                         : (narrow ? enter_range<int32_t> : enter_range<int64_t>));
    i.out = slot(n);
    if (!core) i.a = operand(n->src(0));
    blocks_.push_back({n, program_.code_.size() - 1});
  }

  size_t pop_block(Op op) {
    WEFT_CHECK(!blocks_.empty() && blocks_.back().node->op == op,
               "{}: a block is closed that is not open", source_.name);
    const size_t start = blocks_.back().start;
    blocks_.pop_back();
    return start;
  }

  void close_range(NodeRef n) {
    NodeRef range = n->src(0);
    const size_t start = pop_block(Op::Range);
    const bool narrow = bits(range->dtype) == 32, core = is_core(range);
    Instr& i = emit(core ? (narrow ? next_core<int32_t> : next_core<int64_t>)
                         : (narrow ? next_range<int32_t> : next_range<int64_t>));
    const auto length = static_cast<int32_t>(program_.code_.size() - start);
    i.out = slot(range);
    i.a = program_.code_[start].a;
    i.jump = 2 - length;  // the instruction after the opening one
    program_.code_[start].jump = length;
  }

  void close_if() {
    const size_t start = pop_block(Op::If);
    program_.code_[start].jump = static_cast<int32_t>(program_.code_.size() - start);
  }

  struct Block {
    NodeRef node;
    size_t start;
  };

  const LinearProgram& source_;
  Program& program_;
  NodeMap<uint32_t> slots_;
  std::vector<std::pair<NodeRef, uint32_t>> constants_;
  std::vector<Block> blocks_;
  size_t next_ = 0;
};

Program::Program(const LinearProgram& source) { Decoder(source, *this).decode(); }

void Program::run(const KernelArgs& args, uint32_t begin, uint32_t end) const {
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t(kLine)); }
  };
  const std::unique_ptr<std::byte, Free> memory(
      static_cast<std::byte*>(::operator new(frame_bytes_ + kLine, std::align_val_t(kLine))));
  if (!constants_.empty()) std::memcpy(memory.get(), constants_.data(), constants_.size());
  Frame frame{memory.get(), &args, begin, end};
  for (const Instr* i = code_.data(); i != nullptr;) i = i->step(i, frame);
}

}  // namespace weft::interp
