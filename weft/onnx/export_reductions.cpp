// Folds over axes as ONNX's reductions.
#include "weft/onnx/exporter.h"

namespace weft::onnx {

std::optional<Reduction> reduction_of(NodeRef n) {
  NodeRef reduce = n->op == Op::Reshape ? n->src(0) : n;
  if (reduce->op != Op::Reduce) return std::nullopt;
  const auto axes = reduce_axes(reduce);
  Reduction r{reduce->src(0), reduce, fold_of(reduce), {axes.begin(), axes.end()}, n != reduce};
  if (!r.keepdims) return r;
  if (n->rank() != r.x->rank()) return std::nullopt;
  for (uint32_t i = 0; i < n->rank(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (reduced ? !is_int_const(n->dim(i), 1) : n->dim(i) != r.x->dim(i)) return std::nullopt;
  }
  return r;
}

namespace {

Emission reduction(Exporter& e, const std::string& op, const Reduction& r) {
  return {{r.x}, [&e, op, r](const Names& in) {
            return e.out.node(op, {in[0], e.out.integers(r.axes)},
                              {attribute("keepdims", int64_t{r.keepdims})});
          }};
}

const char* operator_of(Fold fold) {
  switch (fold) {
    case Fold::Add: return "ReduceSum";
    case Fold::Mul: return "ReduceProd";
    case Fold::Max:
    case Fold::Or: return "ReduceMax";
    case Fold::Min:
    case Fold::And: return "ReduceMin";
    case Fold::Set: break;
  }
  return nullptr;
}

MaybeEmission plain(Exporter& e, NodeRef n) {
  const auto r = reduction_of(n);
  if (!r || (r->keepdims && !e.used_once(r->node))) return std::nullopt;
  const char* op = operator_of(r->fold);
  if (!op) return std::nullopt;
  if (!is_bool(n->dtype)) return reduction(e, op, *r);
  const Emission whole = reduction(e, op, *r);  // of bools only since opset 20
  return Emission{whole.needs, [&e, whole](const Names& in) {
                    return e.cast(whole.write({e.cast(in[0], DType::I32)}), DType::Bool);
                  }};
}

MaybeEmission mean(Exporter& e, NodeRef n) {
  if (n->op != Op::Div) return std::nullopt;
  const auto r = reduction_of(n->src(0));
  const auto divisor = repeated_number(n->src(1));
  if (!r || r->fold != Fold::Add || !divisor || !e.used_once(r->node)) return std::nullopt;
  double count = 1;
  for (const int64_t a : r->axes) {
    NodeRef size = r->x->dim(static_cast<size_t>(a));
    if (!is_const(size)) return std::nullopt;
    count *= static_cast<double>(size->vmin);
  }
  if (count != *divisor) return std::nullopt;
  return reduction(e, "ReduceMean", *r);
}

constexpr ExportRule kRules[] = {mean, plain};

}  // namespace

std::span<const ExportRule> export_reductions() { return kRules; }

}  // namespace weft::onnx
