#include "weft/render/wgsl_writer.h"

#include "weft/base/error.h"
#include "weft/render/scopes.h"

namespace weft {

WgslWriter::WgslWriter(const LinearProgram& program)
    : program_(program), values_(program.code.size()) {}

void WgslWriter::write() {
  escaping_ = escaping_values(program_);
  for (size_t i = 0; i < program_.variables.size(); ++i) write_variable(i);
  for (NodeRef n : program_.code)
    if (!is_program_leaf(n)) write_node(n);
}

void WgslWriter::write_variable(size_t i) {
  statement(strformat("let s{} = vec2<u32>(args.var{}_low, args.var{}_high);", i, i, i));
  values_.set(program_.variables[i], {DType::I64, strformat("s{}", i)});
}

std::string WgslWriter::declared(NodeRef n, DType dtype, std::string_view keyword,
                                 std::string_view text) {
  const bool escapes = escaping_.contains(n);
  const Held* known = values_.find(n);
  const std::string name = known ? known->text : strformat("v{}", next_value_++);
  if (escapes && known == nullptr) body_.declare(strformat("var {}: {};", name, wgsl_type(dtype)));
  values_.set(n, {dtype, name});
  statement(escapes ? strformat("{} = {};", name, text)
                    : strformat("{} {}: {} = {};", keyword, name, wgsl_type(dtype), text));
  return name;
}

void WgslWriter::define(NodeRef n, DType dtype, std::string_view text) {
  declared(n, dtype, "let", text);
}

void WgslWriter::write_node(NodeRef n) {
  WEFT_CHECK(n->lanes == 1, "{}: {} of {} lanes, and WGSL has no vectors of any length",
             program_.name, info(n->op).mnemonic, n->lanes);
  switch (n->op) {
    case Op::Range: return write_range(n);
    case Op::If: return open(strformat("if ({})", operand(n->src(0))));
    case Op::EndRange:
    case Op::EndIf: return close();
    case Op::Load: return write_load(n);
    case Op::Store: return write_store(n);
    case Op::WorkId: return write_work_id(n);
    case Op::Barrier: return statement("workgroupBarrier();");
    case Op::Shuffle:
      return define(n, n->dtype,
                    strformat("subgroupShuffleXor({}, {}u)", operand(n->src(0)), n->int_arg(0)));
    case Op::Acc: return write_acc(n);
    case Op::SetAcc:
      return statement(strformat("{} = {};", operand(n->src(0)), operand(n->src(1))));
    case Op::GetAcc: {
      const Held acc = held(n->src(0));
      return define(n, acc.dtype, acc.text);
    }
    case Op::Cast: {
      const Held x = held(n->src(0));
      return define(n, n->dtype, prelude_.expand(cast_text(x.text, x.dtype, n->dtype)));
    }
    case Op::Bitcast: {
      const Held x = held(n->src(0));
      return define(n, n->dtype, bitcast_text(x.text, x.dtype, n->dtype));
    }
    case Op::Sink: return;
    default: return write_alu(n);
  }
}

// A work item runs one item, which the entry point has compared with the last: the block stands
// where a loop would.
void WgslWriter::write_core(NodeRef n) {
  open("");
  define(n, n->dtype, cast_text("item", DType::U32, n->dtype));
}

void WgslWriter::write_work_id(NodeRef n) {
  const bool grid = static_cast<Binding>(n->int_arg(0)) == Binding::Grid;
  const std::string id = strformat("{}.{}", grid ? "group" : "member", "xyz"[n->int_arg(1)]);
  define(n, n->dtype, cast_text(id, DType::U32, n->dtype));
}

void WgslWriter::write_range(NodeRef n) {
  if (range_binding(n) == Binding::Core) return write_core(n);
  const std::string r = strformat("r{}", next_value_++), type(wgsl_type(n->dtype));
  std::string start = strformat("var {}: {} = {}", r, type, zero(n->dtype));
  if (escaping_.contains(n)) {
    body_.declare(strformat("var {}: {};", r, type));
    start = strformat("{} = {}", r, zero(n->dtype));
  }
  const std::string last[] = {r, operand(n->src(0))};
  const std::string step[] = {r, literal(Value::of(n->dtype, 1))};
  // One after the other: both declare what they need, and arguments have no order.
  const std::string inside = alu_text(Op::Lt, n->dtype, last);
  const std::string next = alu_text(Op::Add, n->dtype, step);
  open(strformat("for ({}; {}; {} = {})", start, inside, r, next));
  values_.set(n, {n->dtype, r});
}

// ---- memory

std::string WgslWriter::local_element(NodeRef array, NodeRef index) {
  const Held at = held(index);
  return strformat("l{}[{}]", array->int_arg(0), cast_text(at.text, at.dtype, DType::U32));
}

std::string WgslWriter::element(NodeRef param, NodeRef index) {
  WEFT_CHECK(param->op == Op::Param, "{}: an access to something that is no param", program_.name);
  const auto slot = static_cast<size_t>(param_slot(param));
  WEFT_CHECK(slot < program_.params.size(), "{}: param {} is not declared", program_.name, slot);
  const Held at = held(index);
  // No binding has more than 2^32 bytes: where the index is right its low word is all of it.
  return strformat("{} + args.at{}", cast_text(at.text, at.dtype, DType::U32), slot);
}

std::string WgslWriter::loaded(NodeRef param, NodeRef index, DType dtype) {
  if (param->op == Op::Local) return local_element(param, index);
  const int64_t slot = param_slot(param);
  const std::string e = element(param, index);
  if (!is_part_of_word(dtype)) return strformat("p{}[{}]", slot, e);
  const int width = is_bool(dtype) ? 8 : bits(dtype), each = 32 / width;
  const bool written = program_.params[static_cast<size_t>(slot)].written;
  const std::string at = strformat("e{}", next_value_++);
  statement(strformat("let {} = {};", at, e));
  const std::string word = strformat("p{}[{} / {}u]", slot, at, each);
  const std::string part =
      strformat("extractBits({}, ({} % {}u) * {}u, {}u)",
                written ? strformat("atomicLoad(&{})", word) : word, at, each, width, width);
  if (is_bool(dtype)) return strformat("({} != 0u)", part);
  return wgsl_kind(dtype) == kWgslSigned ? strformat("extractBits(i32({}), 0u, {}u)", part, width)
                                         : part;
}

void WgslWriter::write_load(NodeRef n) {
  if (n->nsrc < 3) return define(n, n->dtype, loaded(n->src(0), n->src(1), n->dtype));
  // Not by select(), which reads whatever the mask says.
  const std::string valid = operand(n->src(2));
  const std::string name = declared(n, n->dtype, "var", zero(n->dtype));
  open(strformat("if ({})", valid));
  statement(strformat("{} = {};", name, loaded(n->src(0), n->src(1), n->dtype)));
  close();
}

void WgslWriter::write_store(NodeRef n) {
  const bool guarded = n->nsrc > 3;
  if (guarded) open(strformat("if ({})", operand(n->src(3))));
  store(n->src(0), n->src(1), n->src(2));
  if (guarded) close();
}

// Neighbours in a word may belong to other work items: two atomic operations change these bits and
// no others. The element itself has one owner, so nobody sees what is between the two.
void WgslWriter::store(NodeRef param, NodeRef index, NodeRef value) {
  const Held v = held(value);
  if (param->op == Op::Local)
    return statement(strformat("{} = {};", local_element(param, index), v.text));
  const int64_t slot = param_slot(param);
  const std::string e = element(param, index);
  if (!is_part_of_word(v.dtype)) return statement(strformat("p{}[{}] = {};", slot, e, v.text));
  const int width = is_bool(v.dtype) ? 8 : bits(v.dtype), each = 32 / width;
  const std::string at = strformat("e{}", next_value_++), shift = strformat("h{}", next_value_++);
  const uint32_t mask = (uint32_t{1} << width) - 1;
  const std::string part =
      is_bool(v.dtype) ? strformat("select(0u, 1u, {})", v.text) : strformat("u32({})", v.text);
  statement(strformat("let {} = {};", at, e));
  statement(strformat("let {} = ({} % {}u) * {}u;", shift, at, each, width));
  statement(strformat("atomicAnd(&p{}[{} / {}u], ~({:#x}u << {}));", slot, at, each, mask, shift));
  statement(strformat("atomicOr(&p{}[{} / {}u], ({} & {:#x}u) << {});", slot, at, each, part, mask,
                      shift));
}

void WgslWriter::write_acc(NodeRef n) {
  const Held init = held(n->src(0));
  declared(n, init.dtype, "var", init.text);
}

const WgslWriter::Held& WgslWriter::held(NodeRef n) {
  if (const Held* known = values_.find(n)) return *known;
  if (n->op == Op::Const) return values_.set(n, {n->dtype, literal(const_value(n))});
  internal_error("render.wgsl", "{}: {} is used before it is computed", program_.name,
                 info(n->op).mnemonic);
}

}  // namespace weft
