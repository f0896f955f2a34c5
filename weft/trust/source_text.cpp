#include "weft/trust/source_text.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "weft/base/error.h"
#include "weft/graph/node_map.h"
#include "weft/graph/print.h"

namespace weft::trust {
namespace {

/// How a language writes what the rows below leave open.
struct Language {
  bool python;
  const char *begin, *declare, *end_line, *show, *end;
};
constexpr Language kCpp{false,
                        "#include <cmath>\n#include <cstdio>\n#include <vector>\n\n#include "
                        "\"weft/weft.h\"\n\nusing namespace weft;\n\nint main() {\n",
                        "  const Tensor ",
                        ";\n",
                        "  std::puts({}.text().c_str());\n",
                        "}\n"};
constexpr Language kPython{true,
                           "from math import inf, nan\n\nfrom weft import Tensor\n\n",
                           "",
                           "\n",
                           "print({}.numpy())\n",
                           ""};

constexpr int64_t kMostElements = 4096;  // of a param that is written out

/// The text of an op: {0} {1} {2} its operands, {dims} its sizes, {ints} its integers as a list,
/// {i0}... one by one, {dtype} its own.
struct Row {
  Op op;
  const char *cpp, *python;
};
constexpr Row kRows[] = {
    {Op::Neg, "-{0}", nullptr},
    {Op::Not, "~{0}", nullptr},
    {Op::Sqrt, "{0}.sqrt()", nullptr},
    {Op::Exp2, "{0}.exp2()", nullptr},
    {Op::Log2, "{0}.log2()", nullptr},
    {Op::Sin, "{0}.sin()", nullptr},
    {Op::Cos, "{0}.cos()", nullptr},
    {Op::Tan, "{0}.tan()", nullptr},
    {Op::Rint, "{0}.round()", nullptr},
    {Op::Trunc, "{0}.trunc()", nullptr},
    {Op::Cast, "{0}.cast({dtype})", nullptr},
    {Op::Bitcast, "{0}.bitcast({dtype})", nullptr},
    {Op::ToIndex, "{0}.cast({dtype})", nullptr},
    {Op::Add, "{0} + {1}", nullptr},
    {Op::Mul, "{0} * {1}", nullptr},
    {Op::Div, "{0} / {1}", nullptr},
    {Op::IDiv, "{0}.floor_div({1})", "{0} // {1}"},
    {Op::Mod, "{0} % {1}", nullptr},
    {Op::Max, "{0}.maximum({1})", nullptr},
    {Op::Min, "{0}.minimum({1})", nullptr},
    {Op::Lt, "{0} < {1}", nullptr},
    {Op::Le, "{0} <= {1}", nullptr},
    {Op::Eq, "{0} == {1}", nullptr},
    {Op::Ne, "{0} != {1}", nullptr},
    {Op::And, "{0} & {1}", nullptr},
    {Op::Or, "{0} | {1}", nullptr},
    {Op::Xor, "{0} ^ {1}", nullptr},
    {Op::Shl, "{0} << {1}", nullptr},
    {Op::Shr, "{0} >> {1}", nullptr},
    {Op::Where, "{0}.where({1}, {2})", nullptr},
    {Op::MulAcc, "{0} * {1} + {2}", nullptr},
    {Op::MulAdd, "{0} * {1} + {2}", nullptr},
    {Op::Reshape, "{0}.reshape({dims})", nullptr},
    {Op::Expand, "{0}.expand({dims})", nullptr},
    {Op::Permute, "{0}.permute({ints})", nullptr},
    {Op::Flip, "{0}.flip({ints})", nullptr},
    {Op::Window, "{0}.window({i0}, {i1}, {i2}, {i3})", nullptr},
    {Op::Gather, "{0}.gather({i0}, {1})", nullptr},
    {Op::Contiguous, "{0}.contiguous()", nullptr},
    {Op::Detach, "{0}.detach()", nullptr},
};
constexpr const char* kFolds[] = {nullptr, "sum", "prod", "max", "min", "all", "any"};
constexpr const char* kScans[] = {nullptr,  "cumsum", "cumprod", "cummax",
                                  "cummin", nullptr,  nullptr};

class Writer {
 public:
  Writer(const RandomGraph& program, const Language& language)
      : program_(program), binding_(program.bindings[0]), l_(language) {}

  std::string run() {
    out_ = l_.begin;
    const Toposort order(program_.roots);
    mark(order.nodes());
    for (NodeRef n : order)
      if (needed_.contains(n)) line(n);
    for (NodeRef root : program_.roots) out_ += with(l_.show, "{}", names_.at(root));
    return out_ + l_.end;
  }

 private:
  using Numbers = std::vector<int64_t>;

  [[noreturn]] static void none(NodeRef n) {
    fail("repro.source", "{} is no operation of Tensor; --show graph prints the program",
         summary(n));
  }

  /// The operands that are arrays; the others are sizes.
  static std::span<const NodeRef> operands(NodeRef n) {
    switch (n->op) {
      case Op::Reshape:
      case Op::Expand:
      case Op::Pad:
      case Op::Shrink:
      case Op::ToIndex: return n->src().first(1);
      case Op::Iota:
      case Op::Param:
      case Op::Variable: return {};
      default: return n->src();
    }
  }
  static bool is_size(NodeRef n) { return n->dtype == DType::Index && n->rank() == 0; }
  void mark(std::span<const NodeRef> order) {
    for (NodeRef root : program_.roots) needed_[root] = true;
    for (size_t i = order.size(); i-- > 0;)
      if (needed_.contains(order[i]) && !is_size(order[i]))
        for (NodeRef s : operands(order[i])) needed_[s] = true;
  }

  // ---- what is filled in

  int64_t number(NodeRef size) const {
    return eval::evaluate(size, {{}, {}, binding_.variables}).at(0).as_int();
  }
  Numbers numbers(std::span<const NodeRef> sizes) const {
    Numbers out;
    for (NodeRef s : sizes) out.push_back(number(s));
    return out;
  }
  Numbers dims(NodeRef n) const { return numbers(n->shape->span()); }

  std::string list(const Numbers& values) const {
    std::string out;
    for (int64_t v : values) append_format(out, "{}{}", out.empty() ? "" : ", ", v);
    if (l_.python && values.size() == 1) out += ",";
    return l_.python ? "(" + out + ")" : "{" + out + "}";
  }
  /// [begin, end) or (before, after) of each axis.
  std::string pairs(const Numbers& first, const Numbers& second) const {
    std::string out;
    for (size_t i = 0; i < first.size(); ++i)
      append_format(out, "{}{}", i == 0 ? "" : ", ", list({first[i], second[i]}));
    if (l_.python && first.size() == 1) out += ",";
    return l_.python ? "(" + out + ")" : "{" + out + "}";
  }
  /// Of data; sizes that are used as numbers are 64-bit ones.
  std::string dtype(DType d) const {
    std::string text(name(d == DType::Index ? DType::I64 : d));
    if (l_.python) return strformat("'{}'", row(d == DType::Index ? DType::I64 : d).numpy_name);
    const size_t small = text.find("nuz");
    const size_t capitals = is_bool(d) ? 1 : std::min(small, text.size());
    std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(capitals), text.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return "DType::" + text;
  }

  std::string literal(Value v) const {
    const double x = v.as_double();
    if (std::isnan(x)) return l_.python ? "nan" : "NAN";
    if (std::isinf(x)) return strformat("{}{}", x < 0 ? "-" : "", l_.python ? "inf" : "INFINITY");
    if (is_bool(v.dtype())) {
      if (l_.python) return v.as_bool() ? "True" : "False";
      return v.as_bool() ? "true" : "false";
    }
    return v.text();
  }
  std::string full(Value v) const {
    const std::string type = dtype(v.dtype());
    return strformat("Tensor{}full({}, {}, {}{})", l_.python ? "." : "::", list({}), literal(v),
                     l_.python ? "dtype=" : "", type);
  }

  /// What a param holds, flat, in the widest type of its kind.
  std::string data(NodeRef param) const {
    const eval::Array& values = binding_.params[static_cast<size_t>(param_slot(param))];
    if (values.count() > kMostElements)
      fail("repro.source", "a param has {} elements, too many for a text; --reduce comes first",
           values.count());
    std::string elements;
    for (int64_t i = 0; i < values.count(); ++i)
      append_format(elements, "{}{}", i == 0 ? "" : ", ", literal(values.at(i)));
    const DType d = param->dtype;
    const std::string shape = list(values.extents());
    if (l_.python)
      return strformat("Tensor([{}], dtype={}).reshape({})", elements, dtype(d), shape);
    const char* type = is_float(d) || is_bool(d) ? "double"
                       : is_unsigned(d)          ? "uint64_t"
                                                 : "int64_t";
    return strformat("Tensor::from(std::vector<{}>{{{}}}, {}).cast({})", type, elements, shape,
                     dtype(d));
  }

  // ---- lines

  static std::string with(std::string_view text, std::string_view what, std::string_view by) {
    std::string out(text);
    const size_t at = out.find(what);
    return at == out.npos ? out : with(out.replace(at, what.size(), by), what, by);
  }
  std::string filled(std::string_view text, NodeRef n) const {
    std::string out(text);
    const auto operand = operands(n);
    for (size_t i = 0; i < operand.size(); ++i)
      out = with(out, strformat("{{{}}}", i), names_.at(operand[i]));
    for (size_t i = 0; i < n->ints().size(); ++i)
      out = with(out, strformat("{{i{}}}", i), std::to_string(n->ints()[i]));
    out = with(out, "{dims}", list(dims(n)));
    out = with(out, "{ints}", list({n->ints().begin(), n->ints().end()}));
    return with(out, "{dtype}", dtype(n->dtype));
  }

  std::string by_row(NodeRef n) const {
    if (n->op == Op::Neg && is_bool(n->dtype)) return names_.at(n->src(0));  // modulo 2
    const auto row = std::ranges::find(kRows, n->op, &Row::op);
    if (row == std::end(kRows)) none(n);
    return filled(l_.python && row->python ? row->python : row->cpp, n);
  }

  std::string fold(NodeRef n) const {
    const bool scan = n->op == Op::Scan;
    const auto kind = static_cast<size_t>(n->int_arg(0));
    const char* method = kind < std::size(kFolds) ? (scan ? kScans : kFolds)[kind] : nullptr;
    const bool logic = kind >= static_cast<size_t>(Fold::And);
    if (!method || (logic && !is_bool(n->dtype))) none(n);
    const std::string& x = names_.at(n->src(0));
    if (scan) {
      const bool pair = l_.python && kind > static_cast<size_t>(Fold::Mul);  // with positions
      return strformat("{}.{}({}){}.cast({})", x, method, n->int_arg(1), pair ? "[0]" : "",
                       dtype(n->dtype));
    }
    const Numbers axes(n->ints().begin() + 1, n->ints().end());
    if (axes.empty()) return x;  // where Tensor means all
    return strformat("{}.{}({}).cast({})", x, method, list(axes), dtype(n->dtype));
  }

  std::string iota(NodeRef n) const {
    const Numbers shape = dims(n);
    Numbers line(shape.size(), 1);
    const auto axis = static_cast<size_t>(n->int_arg(0));
    line[axis] = shape[axis];
    return strformat("Tensor{}arange({}, {}{}).reshape({}).expand({})",
                     l_.python ? "." : "::", shape[axis], l_.python ? "dtype=" : "",
                     dtype(n->dtype), list(line), list(shape));
  }

  std::string movement(NodeRef n) const {
    const size_t rank = n->src(0)->rank();
    const Numbers first = numbers(n->src().subspan(1, rank));
    Numbers second = numbers(n->src().subspan(1 + rank, rank));
    const int64_t plain = n->op == Op::Pad ? 0 : 1;  // interior zeros, steps
    if (std::ranges::any_of(n->ints(), [plain](int64_t i) { return i != plain; }))
      return strided(n, first, second);
    if (n->op == Op::Shrink)
      for (size_t i = 0; i < rank; ++i) second[i] += first[i];
    return strformat("{}.{}({})", names_.at(n->src(0)), n->op == Op::Pad ? "pad" : "shrink",
                     pairs(first, second));
  }

  /// out[i] = x[first + step*i].
  std::string strided(NodeRef n, const Numbers& first, const Numbers& sizes) const {
    if (n->op != Op::Shrink) none(n);
    std::string slices;
    for (size_t i = 0; i < first.size(); ++i) {
      const int64_t step = n->ints()[i];
      const int64_t stop = sizes[i] == 0 ? first[i] : first[i] + step * (sizes[i] - 1) + 1;
      append_format(slices, "{}{}", i == 0 ? "" : ", ",
                    l_.python ? strformat("{}:{}:{}", first[i], stop, step)
                              : strformat("Slice({}, {}, {})", first[i], stop, step));
    }
    if (!l_.python) slices = "{" + slices + "}";
    return strformat("{}[{}]", names_.at(n->src(0)), slices);
  }

  std::string cat(NodeRef n) const {
    std::string parts;
    for (NodeRef s : n->src())
      append_format(parts, "{}{}", parts.empty() ? "" : ", ", names_.at(s));
    return l_.python ? strformat("Tensor.cat({}, dim={})", parts, n->int_arg(0))
                     : strformat("Tensor::cat({{{}}}, {})", parts, n->int_arg(0));
  }

  std::string value_of(NodeRef n) const {
    if (is_size(n)) return full(Value::of(DType::I64, number(n)));
    switch (n->op) {
      case Op::Const: return full(const_value(n));
      case Op::Param: return data(n);
      case Op::Iota: return iota(n);
      case Op::Pad:
      case Op::Shrink: return movement(n);
      case Op::Cat: return cat(n);
      case Op::Reduce:
      case Op::Scan: return fold(n);
      default: return by_row(n);
    }
  }
  void line(NodeRef n) {
    std::string variable = strformat("x{}", next_++);
    out_ += l_.declare + variable + " = " + value_of(n) + l_.end_line;
    names_[n] = std::move(variable);
  }

  const RandomGraph& program_;
  const eval::Inputs& binding_;
  const Language& l_;
  NodeMap<bool> needed_;
  NodeMap<std::string> names_;
  int next_ = 0;
  std::string out_;
};

}  // namespace

std::string cpp_text(const RandomGraph& program) { return Writer(program, kCpp).run(); }
std::string python_text(const RandomGraph& program) { return Writer(program, kPython).run(); }

}  // namespace weft::trust
