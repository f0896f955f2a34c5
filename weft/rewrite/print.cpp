#include "weft/rewrite/print.h"

#include <bit>

#include "weft/base/format.h"

namespace weft {
namespace {

constexpr const char* kSlotNames[kPatSlots] = {"x", "y",  "z",  "w",  "p",
                                               "q", "c0", "c1", "c2", "c3"};
constexpr const char* kFnNames[] = {"vmin",     "vmax",     "divides", "gcd",        "ilog2",
                                    "is_pow2",  "is_float", "is_int",  "is_signed",  "is_bool",
                                    "is_index", "bits",     "exact",   "same_dtype", "native_op"};

/// Text and how tightly it binds: C's levels, larger is tighter.
struct Piece {
  std::string text;
  int level = 100;
};

struct Infix {
  Op op;
  const char* sign;
  int level;
};
constexpr Infix kInfix[] = {
    {Op::Or, "|", 1},   {Op::Xor, "^", 2}, {Op::And, "&", 3}, {Op::Eq, "==", 4},
    {Op::Ne, "!=", 4},  {Op::Lt, "<", 5},  {Op::Le, "<=", 5}, {Op::Shl, "<<", 6},
    {Op::Shr, ">>", 6}, {Op::Add, "+", 7}, {Op::Mul, "*", 8}, {Op::IDiv, "/", 8},
    {Op::Mod, "%", 8},
};

std::string in_parens(const Piece& p, int level) {
  return p.level > level ? p.text : "(" + p.text + ")";
}

Piece call(std::string name, std::span<const Piece> args) {
  std::string out = std::move(name) + "(";
  for (size_t i = 0; i < args.size(); ++i) out += (i ? ", " : "") + args[i].text;
  return {out + ")"};
}

Piece operation(const PatNode& n, std::span<const Piece> args, bool condition) {
  const Op op = static_cast<Op>(n.op);
  for (const Infix& i : kInfix) {
    if (i.op != op || args.size() != 2) continue;
    const bool logical = condition && (op == Op::And || op == Op::Or);
    const std::string sign = logical ? std::string(i.sign) + i.sign : i.sign;
    return {in_parens(args[0], i.level - 1) + " " + sign + " " + in_parens(args[1], i.level),
            i.level};
  }
  if (op == Op::Neg) return {"-" + in_parens(args[0], 9), 9};
  if (op == Op::Not) return {"~" + in_parens(args[0], 9), 9};
  std::string name = op == Op::Div ? "fdiv" : info(op).mnemonic;
  if (n.arg != Pat::kAnyArg) name += strformat("<{}>", weft::name(static_cast<DType>(n.arg - 1)));
  return call(std::move(name), args);
}

std::string literal(const Pat& p, const PatNode& n) {
  const int64_t bits = p.literal[n.arg];
  if (n.kind == PatKind::Int) return strformat("{}", bits);
  return Value::of(DType::F64, std::bit_cast<double>(bits)).text() + "f";
}

/// From the repository's root, wherever it was compiled.
std::string file_of(const Rule& r) {
  std::string_view file = r.file;
  for (std::string_view root : {"weft/", "tests/"}) {
    const size_t at = file.rfind(root);
    if (at != std::string_view::npos && (at == 0 || file[at - 1] == '/')) file.remove_prefix(at);
  }
  return std::string(file);
}

}  // namespace

std::string to_text(const Pat& p, bool condition) {
  std::vector<Piece> stack;
  for (int i = 0; i < p.size; ++i) {
    const PatNode n = p.node[i];
    const size_t count = n.kind == PatKind::Op || n.kind == PatKind::Fn ? n.nsrc : 0;
    const std::span<const Piece> args(stack.data() + stack.size() - count, count);
    Piece out;
    switch (n.kind) {
      case PatKind::Any:
      case PatKind::Const: out.text = kSlotNames[n.arg]; break;
      case PatKind::Int:
      case PatKind::Float: out.text = literal(p, n); break;
      case PatKind::Op: out = operation(n, args, condition); break;
      case PatKind::Fn:
        out = call(kFnNames[n.op], args);
        if (static_cast<PatFn>(n.op) == PatFn::Native)
          out.text =
              strformat("native_{}({})", info(static_cast<Op>(n.arg)).mnemonic, args[0].text);
        break;
      case PatKind::Bind:
        stack.back() = {strformat("{}({})", kSlotNames[n.arg], stack.back().text)};
        continue;
      case PatKind::Typed:
        stack.back() = {
            strformat("{}:{}", in_parens(stack.back(), 99), name(static_cast<DType>(n.arg)))};
        continue;
      case PatKind::CastLike:
        stack.back() = {strformat("cast_like({}, {})", stack.back().text, kSlotNames[n.arg])};
        continue;
    }
    stack.resize(stack.size() - count);
    stack.push_back(std::move(out));
  }
  return stack.empty() ? "" : stack.back().text;
}

std::string domain_text(Domain d) {
  if (d == pat::kAny) return "any";
  constexpr const char* names[] = {"index", "bits", "bool", "float", "real"};
  std::string out;
  for (int i = 0; i < 5; ++i)
    if (static_cast<int>(d) >> i & 1) out += (out.empty() ? "" : "|") + std::string(names[i]);
  return out;
}

std::string to_text(const Rule& r) {
  std::string out = to_text(r.lhs) + " -> " + (r.rhs.empty() ? "code" : to_text(r.rhs));
  if (!r.cond.empty()) out += " if " + to_text(r.cond, true);
  return strformat("{}: {} [{}]", r.name, out, domain_text(r.domain));
}

std::string source_of(const Rule& r) { return strformat("{}:{}", file_of(r), r.line); }

}  // namespace weft
