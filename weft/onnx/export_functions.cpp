// Functions that ONNX has as one operator. What could be one is built again from its operands:
// equal graphs are the same node, so nothing else is taken for it.
#include <algorithm>
#include <cmath>

#include "weft/graph/tuple.h"
#include "weft/onnx/exporter.h"
#include "weft/rewrite/calls.h"
#include "weft/tensor/tensor.h"

namespace weft::onnx {

namespace {

// ---- calls by name

struct CallRow {
  const char* name;
  const char* op;
};
constexpr CallRow kCalls[] = {
    {"acos", "Acos"},       {"acosh", "Acosh"},
    {"asin", "Asin"},       {"asinh", "Asinh"},
    {"atan", "Atan"},       {"atanh", "Atanh"},
    {"cosh", "Cosh"},       {"erf", "Erf"},
    {"exp", "Exp"},         {"log", "Log"},
    {"mish", "Mish"},       {"sinh", "Sinh"},
    {"sigmoid", "Sigmoid"}, {"hardswish", "HardSwish"},
    {"tanh", "Tanh"},       {"softsign", "Softsign"},
    {"det", "Det"},
};

NodeRef called_on(NodeRef n, std::string_view name) {
  if (n->op != Op::Get || n->src(0)->op != Op::Call || n->src(0)->text() != name) return nullptr;
  return n->src(0)->src(0);
}

MaybeEmission call(Exporter& e, NodeRef n) {
  if (n->op != Op::Get || n->src(0)->op != Op::Call) return std::nullopt;
  for (const CallRow& row : kCalls) {
    NodeRef x = called_on(n, row.name);
    if (!x || !is_float(n->dtype)) continue;
    return Emission{{x}, [&e, op = row.op, from = x->dtype, to = n->dtype](const Names& in) {
                      return e.out.node(op, {from == to ? in[0] : e.cast(in[0], to)});
                    }};
  }
  if (NodeRef x = called_on(n, "rsqrt"); x && x->dtype == n->dtype)
    return Emission{
        {x}, [&e](const Names& in) { return e.out.node("Reciprocal", {e.out.node("Sqrt", in)}); }};
  return std::nullopt;
}

/// What no operator stands for, as what it is made of.
MaybeEmission inlined(Exporter& e, NodeRef n) {
  if (n->op != Op::Get || n->src(0)->op != Op::Call) return std::nullopt;
  NodeRef call = n->src(0);
  const auto k = static_cast<size_t>(n->int_arg(0));
  return Emission{{results_on(e.g, call, CallParts(call).inputs)[k]},
                  [](const Names& in) { return in[0]; }};
}

// ---- positions of extremes, and orders

NodeRef tuple_under(NodeRef n, Op op) {
  for (int depth = 0; depth < 8 && n->nsrc > 0; ++depth, n = n->src(0))
    if (n->op == op) return n;
  return nullptr;
}

MaybeEmission extreme(Exporter& e, NodeRef n) {
  if (n->op != Op::Get) return std::nullopt;
  NodeRef tuple = n->src(0);
  const bool is_call = tuple->op == Op::Call && tuple->text() == "position";
  if (!is_call && !(tuple->op == Op::Loop && n->int_arg(0) == 1)) return std::nullopt;
  NodeRef x = tuple->src(0);
  const int64_t axis = is_call ? static_cast<int64_t>(x->rank()) - 1 : tuple->ints().back();
  for (const bool largest : {true, false}) {
    if (axis < 0 || axis >= static_cast<int64_t>(x->rank())) return std::nullopt;
    const Tensor t = e.tensor(x), again = largest ? t.argmax(axis) : t.argmin(axis);
    if (tuple_under(again.node(), tuple->op) != tuple) continue;
    return Emission{{x}, [&e, axis, largest, is_call, d = n->dtype](const Names& in) {
                      return e.cast(e.out.node(largest ? "ArgMax" : "ArgMin", in,
                                               {attribute("axis", axis),
                                                attribute("keepdims", int64_t{is_call})}),
                                    d);
                    }};
  }
  return std::nullopt;
}

MaybeEmission order(Exporter& e, NodeRef n) {
  NodeRef x = called_on(n, "sort");
  const bool sorts = x != nullptr;
  if (!x) x = called_on(n, "topk");
  if (!x || !is_static(n)) return std::nullopt;
  const int64_t k = n->dim(n->rank() - 1)->vmin;
  for (const bool largest : {false, true}) {
    NodeRef given = x->op == Op::Detach ? x->src(0) : x;
    const Tensor t = e.tensor(given);
    const Tensor again = sorts ? t.sort(-1, largest).second : t.topk(k, -1, largest).second;
    if (tuple_under(again.node(), Op::Call) != n->src(0)) continue;
    return Emission{{x}, [&e, k, largest, d = n->dtype](const Names& in) {
                      const Names both = e.out.nodes("TopK", {in[0], e.out.integers({k})}, 2,
                                                     {attribute("largest", int64_t{largest})});
                      return e.cast(both[1], d);
                    }};
  }
  return std::nullopt;
}

// ---- normalisations

/// The operand of a difference that something is taken from; null: it is none.
NodeRef minuend(NodeRef n) {
  if (n->op != Op::Add) return nullptr;
  for (size_t i = 0; i < 2; ++i)
    if (n->src(i)->op == Op::Neg && n->src(1 - i)->op != Op::Neg) return n->src(1 - i);
  return nullptr;
}

MaybeEmission softmax(Exporter& e, NodeRef n) {
  if (n->op != Op::Div) return std::nullopt;
  NodeRef x = called_on(n->src(0), "exp");
  if (!x && n->src(0)->op == Op::Exp2 && n->src(0)->src(0)->op == Op::Mul) {
    NodeRef scaled = n->src(0)->src(0);
    x = repeated_number(scaled->src(0)) ? scaled->src(1) : scaled->src(0);
  }
  x = x ? minuend(x) : nullptr;
  const auto sum = reduction_of(unexpanded(n->src(1)));
  if (!x || !sum || sum->axes.size() != 1) return std::nullopt;
  const int64_t axis = sum->axes[0];
  if (axis >= static_cast<int64_t>(x->rank()) || e.tensor(x).softmax(axis).node() != n)
    return std::nullopt;
  return unary(e, "Softmax", x, {attribute("axis", axis)});
}

MaybeEmission log_softmax(Exporter& e, NodeRef n) {
  NodeRef shifted = minuend(n), x = shifted ? minuend(shifted) : nullptr;
  if (!x || !is_float(n->dtype)) return std::nullopt;
  for (uint32_t a = x->rank(); a-- > 0;)
    if (e.tensor(x).log_softmax(a).node() == n)
      return unary(e, "LogSoftmax", x, {attribute("axis", static_cast<int64_t>(a))});
  return std::nullopt;
}

struct Normalised {
  NodeRef x;
  uint32_t axis;  // and those behind it
  double eps;
};

/// (x - mean) / sqrt(variance + eps) over the last axes.
std::optional<Normalised> normalised(Exporter& e, NodeRef n) {
  if (n->op != Op::Mul) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    NodeRef variance = called_on(unexpanded(n->src(i)), "rsqrt"), x = minuend(n->src(1 - i));
    if (!variance || !x || variance->op != Op::Add) continue;
    for (size_t k = 0; k < 2; ++k) {
      const auto eps = repeated_number(variance->src(k));
      NodeRef mean = variance->src(1 - k);
      const auto r = mean->op == Op::Div ? reduction_of(mean->src(0)) : std::nullopt;
      if (!eps || !r) continue;
      const auto axis = static_cast<uint32_t>(r->axes[0]);
      if (r->axes.size() != x->rank() - axis) continue;
      const Axes axes(r->axes);
      if (e.tensor(x).layernorm(axes, *eps).node() == n) return Normalised{x, axis, *eps};
    }
  }
  return std::nullopt;
}

/// A tensor of the shape of x's axes from `axis` on; null: it is none.
NodeRef trailing(NodeRef n, NodeRef x, uint32_t axis) {
  n = unexpanded(n);
  if (n->op == Op::Reshape) n = n->src(0);
  return std::ranges::equal(n->shape->span(), x->shape->span().subspan(axis)) ? n : nullptr;
}

Emission layer_norm(Exporter& e, const Normalised& norm, NodeRef scale, NodeRef bias) {
  Emission made{{norm.x}, {}};
  for (NodeRef n : {scale, bias})
    if (n) made.needs.push_back(n);
  made.write = [&e, norm, has_scale = scale != nullptr](const Names& in) {
    Names inputs = in;
    if (!has_scale) {
      std::vector<int64_t> shape;
      for (NodeRef d : norm.x->shape->span().subspan(norm.axis)) shape.push_back(d->vmin);
      inputs.push_back(e.out.ones(norm.x->dtype, shape));
    }
    return e.out.node(
        "LayerNormalization", inputs,
        {attribute("axis", static_cast<int64_t>(norm.axis)), attribute("epsilon", norm.eps)});
  };
  return made;
}

MaybeEmission layer_norm(Exporter& e, NodeRef n) {
  for (size_t i = 0; n->op == Op::Add && i < 2; ++i)
    for (size_t k = 0; n->src(i)->op == Op::Mul && k < 2; ++k) {
      NodeRef scaled = n->src(i);
      const auto norm = e.used_once(scaled) ? normalised(e, scaled->src(k)) : std::nullopt;
      if (!norm) continue;
      NodeRef scale = trailing(scaled->src(1 - k), norm->x, norm->axis);
      NodeRef bias = trailing(n->src(1 - i), norm->x, norm->axis);
      if (scale && bias) return layer_norm(e, *norm, scale, bias);
    }
  for (size_t k = 0; n->op == Op::Mul && k < 2; ++k)
    if (const auto norm = normalised(e, n->src(k)))
      if (NodeRef scale = trailing(n->src(1 - k), norm->x, norm->axis))
        return layer_norm(e, *norm, scale, nullptr);
  const auto norm = normalised(e, n);
  if (!norm || !std::ranges::all_of(n->shape->span().subspan(norm->axis), is_const))
    return std::nullopt;
  return layer_norm(e, *norm, nullptr, nullptr);
}

/// A vector that lies along axis 1; null: it is none.
NodeRef per_channel(NodeRef n) {
  n = unexpanded(n);
  return n->op == Op::Reshape && n->src(0)->rank() == 1 ? n->src(0) : nullptr;
}

/// n = a op b with b per channel: calls f(a, b) for both orders.
template <class F>
MaybeEmission with_channels(NodeRef n, Op op, const F& f) {
  for (size_t i = 0; n->op == op && i < 2; ++i)
    if (NodeRef vector = per_channel(n->src(1 - i)))
      if (MaybeEmission made = f(n->src(i), vector)) return made;
  return std::nullopt;
}

MaybeEmission batch_norm(Exporter& e, NodeRef n) {
  return with_channels(n, Op::Add, [&](NodeRef scaled, NodeRef bias) {
    return with_channels(scaled, Op::Mul, [&](NodeRef normal, NodeRef weight) {
      return with_channels(normal, Op::Mul, [&](NodeRef centred, NodeRef invstd) -> MaybeEmission {
        NodeRef x = minuend(centred), variance = called_on(invstd, "rsqrt");
        if (!x || !variance || variance->op != Op::Add) return std::nullopt;
        NodeRef taken = centred->src(centred->src(0) == x ? 1 : 0)->src(0);
        NodeRef mean = per_channel(taken);
        const size_t at = repeated_number(variance->src(0)) ? 0 : 1;
        const auto eps = repeated_number(variance->src(at));
        if (!mean || !eps || x->rank() < 2) return std::nullopt;
        const Tensor again = e.tensor(x).batchnorm(e.tensor(weight), e.tensor(bias), e.tensor(mean),
                                                   e.tensor(invstd));
        if (again.node() != n) return std::nullopt;
        return Emission{{x, weight, bias, mean, variance->src(1 - at)},
                        [&e, eps = *eps](const Names& in) {
                          return e.out.node("BatchNormalization", in, {attribute("epsilon", eps)});
                        }};
      });
    });
  });
}

// ---- elementwise functions of several ops

struct Unary {
  Op root;
  const char* op;
  int64_t since;
  Tensor (*again)(const Tensor& x);
};
constexpr Unary kUnaries[] = {
    {Op::Where, "Relu", 1, [](const Tensor& x) { return x.relu(); }},
    {Op::Where, "Floor", 1, [](const Tensor& x) { return x.floor(); }},
    {Op::Where, "Ceil", 1, [](const Tensor& x) { return x.ceil(); }},
    {Op::Where, "Sign", 1, [](const Tensor& x) { return x.sign(); }},
    {Op::Where, "Round", 11, [](const Tensor& x) { return x.round(); }},
    {Op::Add, "Abs", 1, [](const Tensor& x) { return x.abs(); }},
    {Op::Max, "Abs", 1, [](const Tensor& x) { return x.abs(); }},
    {Op::Ne, "IsNaN", 9, [](const Tensor& x) { return x.isnan(); }},
    {Op::Mul, "Gelu", 20, [](const Tensor& x) { return x.gelu(false); }},
    {Op::Div, "Reciprocal", 1, [](const Tensor& x) { return x.reciprocal(); }},
};

/// What n may be a function of: nodes of its shape some steps below it.
std::vector<NodeRef> operands_near(NodeRef n) {
  constexpr size_t kMost = 24;
  std::vector<NodeRef> found{n};
  for (size_t at = 0; at < found.size() && found.size() < kMost; ++at)
    for (NodeRef s : found[at]->src().first(evaluated_sources(found[at])))
      if (s->shape == n->shape && std::ranges::find(found, s) == found.end()) found.push_back(s);
  found.erase(found.begin());
  return found;
}

MaybeEmission known_unary(Exporter& e, NodeRef n) {
  std::vector<NodeRef> operands;
  for (const Unary& row : kUnaries) {
    if (row.root != n->op || e.opset < row.since) continue;
    if (operands.empty()) operands = operands_near(n);
    for (NodeRef x : operands) {
      const bool fits = is_bool(n->dtype) ? is_float(x->dtype) : x->dtype == n->dtype;
      if (fits && !is_bool(x->dtype) && row.again(e.tensor(x)).node() == n)
        return unary(e, row.op, x);
    }
  }
  return std::nullopt;
}

/// where(x > 0, x, x * slope), and where(x <= low, low, where(x >= high, high, x)).
MaybeEmission leaky_or_clipped(Exporter& e, NodeRef n) {
  if (n->op != Op::Where) return std::nullopt;
  NodeRef x = n->src(1), other = n->src(2);
  for (size_t i = 0; other->op == Op::Mul && is_float(n->dtype) && i < 2; ++i)
    if (const auto slope = repeated_number(other->src(i));
        slope && e.tensor(x).leaky_relu(*slope).node() == n)
      return unary(e, "LeakyRelu", x, {attribute("alpha", *slope)});
  const auto low = repeated_number(n->src(1));
  if (!low || other->op != Op::Where) return std::nullopt;
  const auto high = repeated_number(other->src(1));
  x = other->src(2);
  if (!high || !is_float(n->dtype) || e.tensor(x).hardtanh(*low, *high).node() != n)
    return std::nullopt;
  return Emission{{x}, [&e, d = n->dtype, low = *low, high = *high](const Names& in) {
                    return e.out.node("Clip", {in[0], e.out.scalar(d, low), e.out.scalar(d, high)});
                  }};
}

constexpr ExportRule kRules[] = {softmax, log_softmax, batch_norm,  layer_norm,       call,
                                 extreme, order,       known_unary, leaky_or_clipped, inlined};

}  // namespace

std::span<const ExportRule> export_functions() { return kRules; }

}  // namespace weft::onnx
