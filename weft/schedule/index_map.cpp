#include "weft/schedule/index_map.h"

#include "weft/base/error.h"

namespace weft {
namespace {

using Dims = std::span<const NodeRef>;

/// Splits `position` into one index per extent of `dims`, appending to `out`. Along an axis of size
/// 1 there is but one index, also of a position outside of the whole, which a mask hides.
void unflatten(Graph& g, NodeRef position, Dims dims, std::vector<NodeRef>& out) {
  const size_t before = out.size();
  out.resize(before + dims.size(), g.index(0));
  size_t first = 0;
  while (first < dims.size() && is_int_const(dims[first], 1)) ++first;
  for (size_t i = dims.size(); i-- > first;) {
    if (is_int_const(dims[i], 1)) continue;
    out[before + i] = i == first ? position : g.mod(position, dims[i]);
    if (i != first) position = g.idiv(position, dims[i]);
  }
}

/// The shortest runs of axes of `from` and `to` with equal products, so that each run is mapped on
/// its own.
struct AxisRuns {
  Graph& g;
  Dims from, to;
  size_t f = 0, t = 0;

  bool next(Dims& from_run, Dims& to_run) {
    if (f == from.size() && t == to.size()) return false;
    const size_t f0 = f, t0 = t;
    NodeRef pf = f < from.size() ? from[f++] : g.index(1);
    NodeRef pt = t < to.size() ? to[t++] : g.index(1);
    while (pf != pt) {
      if (pf->op != Op::Const || pt->op != Op::Const) return rest(f0, t0, from_run, to_run);
      if (pf->vmin < pt->vmin && f < from.size())
        pf = g.mul(pf, from[f++]);
      else if (t < to.size())
        pt = g.mul(pt, to[t++]);
      else
        return rest(f0, t0, from_run, to_run);
    }
    from_run = from.subspan(f0, f - f0);
    to_run = to.subspan(t0, t - t0);
    return true;
  }
  bool rest(size_t f0, size_t t0, Dims& from_run, Dims& to_run) {
    f = from.size();
    t = to.size();
    from_run = from.subspan(f0);
    to_run = to.subspan(t0);
    return true;
  }
};

Access map_reshape(Graph& g, NodeRef op, const Access& at) {
  Access out{{}, at.valid};
  AxisRuns runs{g, op->src(0)->shape->span(), op->shape->span()};
  Dims from, to;
  size_t consumed = 0;
  while (runs.next(from, to)) {
    const Dims index = Dims(at.index).subspan(consumed, to.size());
    consumed += to.size();
    if (from.size() == 1 && to.size() == 1)
      out.index.push_back(index[0]);
    else
      unflatten(g, flatten_index(g, index, to), from, out.index);
  }
  return out;
}

Access map_pad(Graph& g, NodeRef op, const Access& at) {
  Access out{{}, at.valid};
  NodeRef x = op->src(0);
  for (size_t a = 0; a < x->rank(); ++a) {
    NodeRef before = op->src(1 + a), after = op->src(1 + x->rank() + a);
    const int64_t interior = op->int_arg(a);
    if (is_int_const(before, 0) && is_int_const(after, 0) && interior == 0) {
      out.index.push_back(at.index[a]);
      continue;
    }
    NodeRef p = g.sub(at.index[a], before), step = g.index(interior + 1);
    NodeRef i = g.idiv(p, step);
    out.valid = g.logical_and(out.valid, g.le(g.index(0), p));
    out.valid = g.logical_and(out.valid, g.lt(i, x->dim(a)));
    if (interior) out.valid = g.logical_and(out.valid, g.eq(g.mod(p, step), g.index(0)));
    out.index.push_back(i);
  }
  return out;
}

Access map_window(Graph& g, NodeRef op, const Access& at) {
  Access out = at;
  const auto axis = static_cast<size_t>(op->int_arg(0));
  NodeRef k = out.index.back();
  out.index.pop_back();
  out.index[axis] =
      g.add(g.mul(out.index[axis], g.index(op->int_arg(2))), g.mul(k, g.index(op->int_arg(3))));
  return out;
}

Access map_unwindow(Graph& g, NodeRef op, const Access& at) {
  Access out = at;
  const auto axis = static_cast<size_t>(op->int_arg(0));
  NodeRef stride = g.index(op->int_arg(2));
  NodeRef t = g.sub(at.index[axis], g.mul(at.index.back(), g.index(op->int_arg(3))));
  out.index[axis] = g.idiv(t, stride);
  out.valid = g.logical_and(out.valid, g.le(g.index(0), out.index[axis]));
  out.valid = g.logical_and(out.valid, g.lt(out.index[axis], op->src(0)->dim(axis)));
  if (op->int_arg(2) != 1) out.valid = g.logical_and(out.valid, g.eq(g.mod(t, stride), g.index(0)));
  return out;
}

}  // namespace

NodeRef flatten_index(Graph& g, std::span<const NodeRef> index, std::span<const NodeRef> dims) {
  NodeRef flat = g.index(0);
  for (size_t i = 0; i < index.size(); ++i) flat = g.add(g.mul(flat, dims[i]), index[i]);
  return flat;
}

Access written_access(Graph& g, NodeRef assign, Access at) {
  for (NodeRef view = assign->src(1); view != assign->src(0); view = view->src(0))
    at = map_access(g, view, at);
  return at;
}

Access map_access(Graph& g, NodeRef op, const Access& at) {
  NodeRef x = op->src(0);
  Access out{at.index, at.valid};
  switch (op->op) {
    case Op::Reshape: return map_reshape(g, op, at);
    case Op::Pad: return map_pad(g, op, at);
    case Op::Window: return map_window(g, op, at);
    case Op::Unwindow: return map_unwindow(g, op, at);
    case Op::Expand:
      for (size_t a = 0; a < x->rank(); ++a)
        if (x->dim(a) != op->dim(a)) out.index[a] = g.index(0);
      return out;
    case Op::Permute:
      for (size_t a = 0; a < x->rank(); ++a)
        out.index[static_cast<size_t>(op->int_arg(a))] = at.index[a];
      return out;
    case Op::Shrink:
      for (size_t a = 0; a < x->rank(); ++a)
        out.index[a] = g.add(op->src(1 + a), g.mul(at.index[a], g.index(op->int_arg(a))));
      return out;
    case Op::Flip:
      for (int64_t axis : op->ints()) {
        const auto a = static_cast<size_t>(axis);
        out.index[a] = g.sub(g.sub(x->dim(a), g.index(1)), at.index[a]);
      }
      return out;
    default: internal_error("schedule", "{} is not an index map", info(op->op).mnemonic);
  }
}

}  // namespace weft
