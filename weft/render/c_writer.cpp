#include "weft/render/c_writer.h"

#include "weft/base/error.h"
#include "weft/render/scopes.h"

namespace weft {

namespace {

using Kind = CType::Kind;

}  // namespace

CType c_storage(DType dtype, int lanes) {
  return is_bool(dtype) ? CType{Kind::Unsigned, 8, lanes} : c_type(dtype, lanes);
}

std::string work_id_name(NodeRef id) {
  const bool grid = static_cast<Binding>(id->int_arg(0)) == Binding::Grid;
  return strformat("{}_{}", grid ? "group" : "item", "xyz"[id->int_arg(1)]);
}

CWriter::CWriter(const LinearProgram& program, const CDialect& dialect)
    : program_(program), prelude_(dialect), values_(program.code.size()) {}

void CWriter::write() {
  escaping_ = escaping_values(program_);
  for (size_t i = 0; i < program_.variables.size(); ++i) {
    const CType type = c_type(program_.variables[i]->dtype, 1);
    const std::string given =
        dialect().has_work_items() ? strformat("var{}", i) : strformat("vars[{}]", i);
    statement(
        strformat("const {} s{} = ({}){};", prelude_.type(type), i, prelude_.type(type), given));
    values_.set(program_.variables[i], {type, strformat("s{}", i)});
  }
  for (NodeRef n : program_.code)
    if (!is_program_leaf(n)) write_node(n);
}

// With a value, for the loop that never runs.
void CWriter::declare_escaping(CType type, const std::string& name) {
  body_.declare(strformat("{} {} = {};", prelude_.type(type), name, type.lanes == 1 ? "0" : "{0}"));
}

void CWriter::define(NodeRef n, CType type, const std::string& text) {
  const bool escapes = escaping_.contains(n);
  Held* known = values_.find(n);
  if (known == nullptr) {
    known = &values_.set(n, {type, strformat("v{}", next_value_++)});
    if (escapes) declare_escaping(type, known->text);
  }
  if (escapes) {
    statement(strformat("{} = {};", known->text, text));
  } else {
    statement(strformat("const {} {} = {};", prelude_.type(type), known->text, text));
  }
}

void CWriter::write_node(NodeRef n) {
  WEFT_CHECK(n->lanes == 1 || dialect().vectors, "{}: {} of {} lanes, and {} has no vectors",
             program_.name, info(n->op).mnemonic, n->lanes, dialect().name);
  switch (n->op) {
    case Op::Range: return write_range(n);
    case Op::If: return open(strformat("if ({})", operand(n->src(0))));
    case Op::EndRange:
    case Op::EndIf: return close();
    case Op::Load: return write_load(n);
    case Op::Store: return write_store(n);
    case Op::WorkId: return define(n, c_type(n->dtype, 1), work_id_name(n));
    case Op::Barrier: return statement(dialect().barrier);
    case Op::Shuffle: {
      const CType type = c_type(n->dtype, 1);
      const std::string exchange = prelude_.function("shuffle", type);
      return define(n, type,
                    strformat("{}({}, {})", exchange, operand(n->src(0), type), n->int_arg(0)));
    }
    case Op::Acc: return write_acc(n);
    case Op::SetAcc: {
      const Held acc = held(n->src(0));
      return statement(strformat("{} = {};", acc.text, operand(n->src(1), acc.type)));
    }
    case Op::GetAcc: {
      const Held acc = held(n->src(0));
      return define(n, acc.type, acc.text);
    }
    case Op::Vec: return write_vec(n);
    case Op::Lane: return write_lane(n);
    case Op::Splat: {
      const CType type = c_type(n->dtype, n->lanes);
      return define(n, type, operand(n->src(0), type));
    }
    case Op::Cast: return write_cast(n);
    case Op::Sink: return;
    default: return write_alu(n);
  }
}

void CWriter::write_range(NodeRef n) {
  const CType type = c_type(n->dtype, 1);
  const std::string name = strformat("r{}", next_value_++), t = prelude_.type(type);
  std::string declared = t + " " + name;
  if (escaping_.contains(n)) {
    declare_escaping(type, name);
    declared = name;
  }
  const bool core = range_binding(n) == Binding::Core;
  const std::string first = core ? strformat("({})begin", t) : "0";
  const std::string last = core ? strformat("({})end", t) : operand(n->src(0), type);
  open(strformat("for ({} = {}; {} < {}; ++{})", declared, first, name, last, name));
  values_.set(n, {type, name});
}

std::string CWriter::place(NodeRef param, NodeRef index, CType type) {
  if (param->op == Op::Local) return strformat("l{}[{}]", param->int_arg(0), operand(index));
  WEFT_CHECK(param->op == Op::Param, "{}: an access to something that is no param", program_.name);
  const std::string element = strformat("p{} + {}", param_slot(param), operand(index));
  const auto slot = static_cast<size_t>(param_slot(param));
  WEFT_CHECK(slot < program_.params.size(), "{}: param {} is not declared", program_.name, slot);
  const CType stored = c_storage(program_.params[slot].dtype, 1);
  if (type == stored) return strformat("p{}[{}]", param_slot(param), operand(index));
  return strformat("*({}{}*)({})", dialect().memory, prelude_.memory_type(type), element);
}

std::string CWriter::from_memory(const std::string& lvalue, DType dtype, CType type) {
  if (!is_bool(dtype)) return lvalue;
  return type.lanes == 1 ? lvalue + " != 0"
                         : strformat("({})({} != 0)", prelude_.type(type), lvalue);
}

std::string CWriter::to_memory(const std::string& value, DType dtype, CType type) {
  if (!is_bool(dtype) || type.lanes == 1) return value;
  return strformat("({})({} & 1)", prelude_.type(c_storage(dtype, type.lanes)), value);
}

void CWriter::write_load(NodeRef n) {
  const CType type = c_type(n->dtype, n->lanes), stored = c_storage(n->dtype, n->lanes);
  std::string lvalue = place(n->src(0), n->src(1), stored);
  if (n->lanes > 1) lvalue = strformat("({}){}", prelude_.type(stored), lvalue);
  std::string text = from_memory(lvalue, n->dtype, type);
  if (n->nsrc > 2) {
    const std::string zero = n->lanes == 1 ? "0" : strformat("({}){{0}}", prelude_.type(type));
    text = strformat("{} ? {} : {}", operand(n->src(2)), text, zero);
  }
  define(n, type, text);
}

void CWriter::write_store(NodeRef n) {
  const NodeRef value = n->src(2);
  const CType type = c_type(value->dtype, value->lanes);
  const std::string target = place(n->src(0), n->src(1), c_storage(value->dtype, value->lanes));
  const bool guarded = n->nsrc > 3;
  if (guarded) open(strformat("if ({})", operand(n->src(3))));
  const std::string text = operand(value, type);
  statement(strformat("{} = {};", target, to_memory(text, value->dtype, type)));
  if (guarded) close();
}

void CWriter::write_acc(NodeRef n) {
  const CType type = type_of(n->src(0)).with_lanes(n->lanes);
  const std::string init = operand(n->src(0), type);
  Held* known = values_.find(n);
  const bool escapes = escaping_.contains(n);
  if (known == nullptr) {
    known = &values_.set(n, {type, strformat("a{}", next_value_++)});
    if (escapes) declare_escaping(type, known->text);
  }
  statement(escapes ? strformat("{} = {};", known->text, init)
                    : strformat("{} {} = {};", prelude_.type(type), known->text, init));
}

void CWriter::write_vec(NodeRef n) {
  const CType type = c_type(n->dtype, n->lanes);
  std::string list;
  for (NodeRef s : n->src()) {
    if (!list.empty()) list += ", ";
    list += is_bool(n->dtype) ? strformat("-(i8){}", operand(s)) : operand(s);
  }
  define(n, type, strformat("({}){{{}}}", prelude_.type(type), list));
}

void CWriter::write_lane(NodeRef n) {
  const std::string lane = strformat("{}[{}]", operand(n->src(0)), n->int_arg(0));
  define(n, c_type(n->dtype, 1), is_bool(n->dtype) ? lane + " != 0" : lane);
}

const CWriter::Held& CWriter::held(NodeRef n) {
  if (const Held* known = values_.find(n)) return *known;
  if (n->op == Op::Const) {
    const CType scalar = c_type(n->dtype, 1);
    prelude_.type(scalar);
    return values_.set(n, {scalar, literal(const_value(n))});
  }
  internal_error("render.c", "{}: {} is used before it is computed", program_.name,
                 info(n->op).mnemonic);
}

CType CWriter::type_of(NodeRef n) {
  const CType type = held(n).type;
  return n->lanes == type.lanes ? type : c_type(n->dtype, n->lanes);
}

std::string CWriter::operand(NodeRef n, CType want) { return converted(held(n), want); }

std::string CWriter::converted(const Held& value, CType want) {
  if (value.type == want || (value.type.lanes == 1 && want.lanes == 1)) return value.text;
  if (value.type.lanes == 1) {
    const std::string splat = prelude_.function("splat", want);
    const bool mask = value.type.kind == Kind::Bool;
    return strformat("{}({}{})", splat, mask ? strformat("-({})", want.scalar()) : "", value.text);
  }
  // Only masks come in several widths.
  return strformat("{}({})", prelude_.function("mask", want, value.type), value.text);
}

}  // namespace weft
