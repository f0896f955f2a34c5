// dtype index becomes i32 or i64; masks that are decided disappear.
#include <algorithm>
#include <limits>

#include "weft/base/error.h"
#include "weft/graph/walks.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/rewrite/op_rules.h"

namespace weft::lower {
namespace {

bool fits_i32(int64_t min, int64_t max) {
  return min >= std::numeric_limits<int32_t>::min() && max <= std::numeric_limits<int32_t>::max();
}
bool fits_i32(NodeRef n) { return fits_i32(n->vmin, n->vmax); }

class WidthChooser : public OpStep {
 public:
  WidthChooser(Graph& g, Analysis& of)
      : OpStep(g, of.order()), deps_(of.deps()), tree_(of.loops()) {}

  using Typed = NodeRef (WidthChooser::*)(NodeRef);

  // ---- leaves

  NodeRef typed_const(NodeRef n) {
    return is_index(n->dtype) ? constant(n->vmin, fits_i32(n) ? DType::I32 : DType::I64) : n;
  }

  /// A variable itself stays an index: launches pass it as i64.
  NodeRef typed_variable(NodeRef n) {
    const DType width = fits_i32(n) ? DType::I32 : DType::I64;
    return g_.cast(n, width);
  }

  /// A program's params have no size: buffers are bound at launch, accesses were proved before.
  NodeRef typed_param(NodeRef n) {
    return g_.intern({Op::Param, n->dtype, {}, n->ints(), n->text()});
  }

  NodeRef typed_range(NodeRef n) {
    const bool core = range_binding(n) == Binding::Core;
    NodeRef size = core ? launched_size(n->src(0)) : image(n->src(0));
    const NodeRef src[] = {size};
    return g_.intern({Op::Range, size->dtype, src, n->ints()});
  }

  NodeRef typed_work_id(NodeRef n) {
    NodeRef size = launched_size(n->src(0));
    const NodeRef src[] = {size};
    return g_.intern({Op::WorkId, size->dtype, src, n->ints()});
  }

  // ---- arithmetic

  NodeRef typed_other(NodeRef n) { return is_index(n->dtype) ? typed_index(n) : typed_data(n); }

  NodeRef typed_add(NodeRef n) {
    return is_index(n->dtype) && n->lanes == 1 ? typed_sum(n) : typed_other(n);
  }

  NodeRef typed_index(NodeRef n) {
    SmallVector<NodeRef, 8> src = sources(n);
    WEFT_CHECK(n->op != Op::Cast, "data is cast to an index: only toindex may");
    const DType width = common_width(n, src);
    for (NodeRef& s : src)
      if (!is_bool(s->dtype)) s = widened(s, width);
    if (is_alu(n->op)) return elementwise(g_, n->op, width, src);
    return g_.make({n->op, width, src, n->ints(), n->text(), n->lanes});
  }

  /// Loops carry an index as i64: nothing bounds what they compute.
  NodeRef typed_loop(NodeRef n) {
    SmallVector<NodeRef, 8> src = sources(n);
    for (size_t i = 0; i < src.size(); ++i)
      if (is_index(n->src(i)->dtype) && n->src(i)->op != Op::Range)
        src[i] = widened(src[i], DType::I64);
    const DType dtype = is_index(n->dtype) ? DType::I64 : n->dtype;
    return g_.make({n->op, dtype, src, n->ints(), n->text(), n->lanes});
  }

  /// Terms from the outermost loop to the innermost, the constant last: a prefix that does not
  /// change in a loop is computed outside it, and copies that differ by a constant share all but
  /// their last addition.
  NodeRef typed_sum(NodeRef n) {
    struct Term {
      NodeRef node;
      int depth;
    };
    SmallVector<Term, 16> terms;
    for (NodeRef t : operands_of(n, Op::Add)) terms.push_back({t, depth(t)});
    // Terms have distinct hashes, so the order is the same on every run.
    std::sort(terms.begin(), terms.end(), [](const Term& x, const Term& y) {
      return x.depth != y.depth ? x.depth < y.depth : x.node->hash < y.node->hash;
    });
    DType width = DType::I32;
    int64_t min = 0, max = 0;
    for (const auto& [t, level] : terms) {
      const bool overflow =
          __builtin_add_overflow(min, t->vmin, &min) || __builtin_add_overflow(max, t->vmax, &max);
      if (overflow || !fits_i32(min, max) || image(t)->dtype != DType::I32) width = DType::I64;
      if (overflow) break;
    }
    NodeRef sum = nullptr;
    for (const auto& [t, level] : terms) {
      NodeRef term = widened(image(t), width);
      sum = sum ? ordered_add(sum, term, width) : term;
    }
    return sum;
  }

  /// clamp(data, 0, size - 1), in a type that holds both.
  NodeRef typed_toindex(NodeRef n) {
    NodeRef size = n->src(1), data = image(n->src(0));
    const bool narrow = fits_i32(size);
    DType width = narrow ? DType::I32 : DType::I64;
    if (data->dtype == DType::U64)
      width = DType::U64;
    else if (data->dtype == DType::I64 || data->dtype == DType::U32)
      width = DType::I64;
    NodeRef last = image(size);
    last = g_.add(last, constant(-1, last->dtype));
    if (size->vmin < 1) last = g_.alu(Op::Max, {last, constant(0, last->dtype)});
    data = g_.cast(data, width);
    if (data->vmin < 0) data = g_.alu(Op::Max, {data, constant(0, width)});
    if (data->vmax >= size->vmin) data = g_.alu(Op::Min, {data, g_.cast(last, width)});
    return g_.cast(data, narrow ? DType::I32 : DType::I64);
  }

  // ---- data

  NodeRef typed_data(NodeRef n) {
    SmallVector<NodeRef, 8> src = sources(n);
    if (n->op == Op::Cast && is_index(n->src(0)->dtype)) return g_.cast(src[0], n->dtype);
    const bool compares = has_trait(n->op, kBoolResult) && is_index(n->src(0)->dtype);
    if (compares) {
      const DType width = common_width(n, src);
      for (NodeRef& s : src) s = widened(s, width);
    }
    if (std::equal(src.begin(), src.end(), n->src().begin(), n->src().end())) return n;
    if (is_alu(n->op)) return elementwise(g_, n->op, n->dtype, src);
    return g_.make({n->op, n->dtype, src, n->ints(), n->text(), n->lanes});
  }

  // ---- memory

  NodeRef typed_store(NodeRef n) { return typed_access(n, 3); }
  NodeRef typed_load(NodeRef n) {
    const bool never = n->nsrc > 2 && is_int_const(image(n->src(2)), 0);
    if (never) return splat(g_, g_.constant(Value::of(n->dtype, 0)), n->lanes);
    return typed_access(n, 2);
  }
  NodeRef typed_sink(NodeRef n) {
    SmallVector<NodeRef, 16> roots;
    for (NodeRef s : n->src()) {
      NodeRef store = image(s);
      const bool never = store->nsrc > 3 && is_int_const(store->src(3), 0);
      if (!never) roots.push_back(store);
    }
    return g_.intern({Op::Sink, n->dtype, roots});
  }

 private:
  NodeRef constant(int64_t v, DType dtype) { return g_.constant(Value::of(dtype, v)); }

  /// Launches say what part of a core range runs, and how large a grid is: the size must only be a
  /// leaf that is large enough.
  NodeRef launched_size(NodeRef size) {
    return constant(size->vmax, fits_i32(size) ? DType::I32 : DType::I64);
  }

  NodeRef widened(NodeRef n, DType to) { return n->dtype == to ? n : g_.cast(n, to); }

  /// Operands in one width, wide where one is or the result (bounds min, max) needs it.
  DType common_width(NodeRef n, std::span<const NodeRef> src) const {
    bool narrow = !is_index(n->dtype) || fits_i32(n);
    for (NodeRef s : src) narrow = narrow && (is_bool(s->dtype) || s->dtype == DType::I32);
    return narrow ? DType::I32 : DType::I64;
  }

  int depth(NodeRef n) const {
    if (n->op == Op::Const) return std::numeric_limits<int>::max();
    return tree_.depth(tree_.deepest(deps_.of(n)));
  }
  NodeRef ordered_add(NodeRef a, NodeRef b, DType width) {
    const NodeRef src[] = {a, b};
    return g_.make({Op::Add, width, src});
  }

  NodeRef typed_access(NodeRef n, size_t valid_at) {
    SmallVector<NodeRef, 8> src = sources(n);
    if (src.size() == valid_at + 1 && is_int_const(src[valid_at], 1)) src.pop_back();
    return g_.make({n->op, n->dtype, src, n->ints(), n->text(), n->lanes});
  }

  const RangeDeps& deps_;
  const LoopTree& tree_;
};

constexpr OpRule<WidthChooser::Typed> kRules[] = {
    on(Op::Const, "const.width", &WidthChooser::typed_const),
    on(Op::Variable, "variable.width", &WidthChooser::typed_variable),
    on(Op::Param, "param.width", &WidthChooser::typed_param),
    on(Op::Range, "range.width", &WidthChooser::typed_range),
    on(Op::WorkId, "workid.width", &WidthChooser::typed_work_id),
    on(Op::Add, "add.width", &WidthChooser::typed_add),
    on(Op::ToIndex, "toindex.width", &WidthChooser::typed_toindex),
    on(Op::Reduce, "reduce.width", &WidthChooser::typed_loop),
    on(Op::Scan, "scan.width", &WidthChooser::typed_loop),
    on(Op::Loop, "loop.width", &WidthChooser::typed_loop),
    on(Op::Carry, "carry.width", &WidthChooser::typed_loop),
    on(Op::Get, "get.width", &WidthChooser::typed_loop),
    on(Op::Barrier, "barrier.width", &WidthChooser::typed_loop),
    on(Op::Load, "load.width", &WidthChooser::typed_load),
    on(Op::Store, "store.width", &WidthChooser::typed_store),
    on(Op::Sink, "sink.width", &WidthChooser::typed_sink),
    otherwise("any.width", &WidthChooser::typed_other),
};
constexpr OpRules kWidthRules("choose widths",
                              "Lowering: dtype index becomes i32 where that is proved.", kRules);

}  // namespace

NodeRef choose_widths(Graph& g, Analysis& of) { return WidthChooser(g, of).run(kWidthRules); }

RuleSetRow width_rules() { return kWidthRules.row(); }

}  // namespace weft::lower
