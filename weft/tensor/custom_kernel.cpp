#include "weft/tensor/custom_kernel.h"

#include <algorithm>
#include <numbers>

#include "weft/base/context.h"
#include "weft/graph/program.h"
#include "weft/graph/tuple.h"
#include "weft/graph/verify.h"
#include "weft/tensor/tracing.h"

namespace weft {

// ---- numbers

namespace {

constexpr const char* kTag = "custom_kernel";

/// What two operands meet in. Loop variables are weak integers.
DType common_dtype(const std::vector<KernelOperand>& operands) {
  DType common = DType::Void;
  bool index = false;
  for (const KernelOperand& x : operands) {
    if (!x.writer()) continue;
    if (x.number.dtype() == DType::Index)
      index = true;
    else
      common = common == DType::Void ? x.number.dtype() : promote(common, x.number.dtype());
  }
  const bool loop_only = common == DType::Void && index;
  if (loop_only) common = DType::Index;
  if (index && common == DType::Bool) common = DType::I64;
  for (const KernelOperand& x : operands) {
    if (x.writer()) continue;
    if (common == DType::Void) common = x.literal.default_dtype();
    if (common == DType::Index)
      common = x.literal.is_float() ? DType::F32 : DType::Index;
    else
      common = promote_weak(common, x.literal);
  }
  return common;
}

/// The ranges of any of these, each once.
std::vector<NodeRef> ranges_of(std::span<const KernelOperand> operands) {
  std::vector<NodeRef> all;
  for (const KernelOperand& x : operands)
    for (NodeRef r : x.ranges())
      if (!contains(all, r)) all.push_back(r);
  return all;
}

KernelWriter& writer_of(const std::vector<KernelOperand>& operands) {
  for (const KernelOperand& x : operands)
    if (x.writer()) return *x.writer();
  fail(kTag, "an operation on numbers that belong to no kernel");
}

KernelNumber apply(Op op, const KernelOperand& a, const KernelOperand& b) {
  return writer_of({a, b}).op(op, {a, b});
}

KernelNumber as_float(const KernelNumber& x) {
  return is_float(x.dtype()) ? x : x.cast(DType::F32);
}

}  // namespace

DType KernelNumber::dtype() const {
  if (!node_) fail(kTag, "a KernelNumber that holds nothing");
  return node_->dtype;
}

KernelNumber KernelNumber::cast(DType to) const {
  const DType from = dtype();
  if (to == from) return *this;
  if (to == DType::Index) fail_type(kTag, "data becomes a position by position()");
  NodeRef x = node_;
  if (from == DType::Index && !is_int(to)) x = writer_->g_.cast(x, DType::I64);
  return {writer_, writer_->g_.cast(x, to), ranges_};
}

KernelNumber KernelWriter::op(Op op, const std::vector<KernelOperand>& operands) {
  if (!is_alu(op) || op == Op::Cast || op == Op::Bitcast || op == Op::ToIndex)
    fail(kTag, "{} is no elementwise op on equal dtypes", info(op).mnemonic);
  if (operands.size() != static_cast<size_t>(info(op).arity))
    fail(kTag, "{} takes {} operands, not {}", info(op).mnemonic, info(op).arity, operands.size());
  std::vector<KernelOperand> data(operands.begin() + (op == Op::Where ? 1 : 0), operands.end());
  DType common = common_dtype(data);
  if (has_trait(op, kFloatOnly) && !is_float(common)) common = DType::F32;
  std::vector<NodeRef> src;
  if (op == Op::Where) src.push_back(in_dtype(operands[0], DType::Bool));
  for (const KernelOperand& x : data) src.push_back(in_dtype(x, common));
  const NodeSpec spec{op, has_trait(op, kBoolResult) ? DType::Bool : common, src, {}, {}, 1};
  if (const char* problem = node_problem(spec, static_cast<uint8_t>(Dialect::Kernel)))
    fail_type(kTag, "{} of {}: {}", info(op).mnemonic, weft::name(common), problem);
  return number(g_.make(spec), ranges_of(operands));
}

NodeRef KernelWriter::in_dtype(const KernelOperand& x, DType to) {
  if (x.writer()) {
    if (x.writer() != this) fail(kTag, "a number of another kernel is used");
    return x.number.cast(to).node();
  }
  if (to == DType::Index) return g_.index(x.literal.as(DType::I64).as_int());
  return g_.constant(x.literal.as(to));
}

KernelNumber operator+(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Add, a, b);
}
KernelNumber operator-(const KernelOperand& a, const KernelOperand& b) {
  KernelWriter& w = writer_of({a, b});
  const DType d = common_dtype({a, b});
  const KernelNumber x = w.as(b, d);
  return apply(Op::Add, a, d == DType::Index ? w.op(Op::Mul, {x, -1}) : w.op(Op::Neg, {x}));
}
KernelNumber operator*(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Mul, a, b);
}
KernelNumber operator/(const KernelOperand& a, const KernelOperand& b) {
  return apply(is_float(common_dtype({a, b})) ? Op::Div : Op::IDiv, a, b);
}
KernelNumber operator%(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Mod, a, b);
}
KernelNumber operator<(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Lt, a, b);
}
KernelNumber operator<=(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Le, a, b);
}
KernelNumber operator>(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Lt, b, a);
}
KernelNumber operator>=(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Le, b, a);
}
KernelNumber operator==(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Eq, a, b);
}
KernelNumber operator!=(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Ne, a, b);
}
KernelNumber operator&(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::And, a, b);
}
KernelNumber operator|(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Or, a, b);
}
KernelNumber operator^(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Xor, a, b);
}
KernelNumber operator-(const KernelNumber& x) { return 0 - x; }
KernelNumber operator~(const KernelNumber& x) { return writer_of({x}).op(Op::Not, {x}); }
KernelNumber maximum(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Max, a, b);
}
KernelNumber minimum(const KernelOperand& a, const KernelOperand& b) {
  return apply(Op::Min, a, b);
}
KernelNumber exp(const KernelNumber& x) {
  return writer_of({x}).op(Op::Exp2, {as_float(x) * std::numbers::log2e});
}
KernelNumber log(const KernelNumber& x) {
  return writer_of({x}).op(Op::Log2, {as_float(x)}) * std::numbers::ln2;
}
KernelNumber sin(const KernelNumber& x) { return writer_of({x}).op(Op::Sin, {x}); }
KernelNumber sqrt(const KernelNumber& x) { return writer_of({x}).op(Op::Sqrt, {x}); }

// ---- the kernel

KernelWriter::KernelWriter(Graph& g, std::vector<Argument> outputs, std::vector<Argument> inputs)
    : g_(g), outputs_(std::move(outputs)), inputs_(std::move(inputs)) {}

KernelNumber KernelWriter::range(int64_t size) {
  if (size < 0) fail(kTag, "range({}): the size must be at least 0", size);
  NodeRef r = g_.range(size, next_range_++);
  return number(r, {r});
}

const Dims& KernelWriter::input_shape(size_t input) const {
  if (input >= inputs_.size()) fail_index(kTag, "input {} of {}", input, inputs_.size());
  return inputs_[input].dims;
}
const Dims& KernelWriter::output_shape(size_t output) const {
  if (output >= outputs_.size()) fail_index(kTag, "output {} of {}", output, outputs_.size());
  return outputs_[output].dims;
}

NodeRef KernelWriter::param(size_t slot) {
  const Argument& a = slot < outputs_.size() ? outputs_[slot] : inputs_[slot - outputs_.size()];
  NodeRef count = g_.index(a.dims.product().max());
  return g_.param(static_cast<int64_t>(slot), a.dtype, {&count, 1});
}

/// The flat position; `valid` gets the conditions under which it is inside.
NodeRef KernelWriter::place(const char* what, const Argument& a,
                            const std::vector<KernelOperand>& position, NodeRef& valid) {
  if (position.size() != a.dims.size())
    fail_index(kTag, "{}: {} positions for a tensor of shape {}: give one for each axis", what,
               position.size(), a.dims.text());
  NodeRef flat = g_.index(0);
  for (size_t i = 0; i < position.size(); ++i) {
    const KernelOperand& p = position[i];
    if (p.writer() ? p.number.dtype() != DType::Index : p.literal.is_float())
      fail_type(kTag, "{}: position {} is {}: use range()s, or position() for loaded integers",
                what, i, p.writer() ? weft::name(p.number.dtype()) : "a float");
    NodeRef at = in_dtype(p, DType::Index), size = g_.index(a.dims[i].max());
    if (at->vmin < 0) valid = g_.logical_and(valid, g_.le(g_.index(0), at));
    if (at->vmax >= size->vmin) valid = g_.logical_and(valid, g_.lt(at, size));
    flat = g_.add(g_.mul(flat, size), at);
  }
  return flat;
}

KernelNumber KernelWriter::load(size_t input, const std::vector<KernelOperand>& position) {
  input_shape(input);
  NodeRef valid = g_.boolean(true);
  NodeRef at = place("load", inputs_[input], position, valid);
  NodeRef from = param(outputs_.size() + input);
  const bool always = is_int_const(valid, 1);
  NodeRef made = always ? g_.make(Op::Load, from->dtype, {from, at})
                        : g_.make(Op::Load, from->dtype, {from, at, valid});
  return number(made, ranges_of(position));
}

void KernelWriter::store(size_t output, const std::vector<KernelOperand>& position,
                         const KernelOperand& value, Fold combine) {
  store_if(number(g_.boolean(true), {}), output, position, value, combine);
}

void KernelWriter::store_if(const KernelNumber& when, size_t output,
                            const std::vector<KernelOperand>& position, const KernelOperand& value,
                            Fold combine) {
  output_shape(output);
  NodeRef valid = in_dtype(when, DType::Bool);
  NodeRef at = place("store", outputs_[output], position, valid);
  NodeRef to = param(output);
  std::vector<NodeRef> src{to, at, in_dtype(value, to->dtype)};
  std::vector<KernelOperand> written(position);
  written.insert(written.end(), {value, when});
  std::vector<NodeRef> ranges = ranges_of(written);
  for (NodeRef r : ranges)
    if (is_int_const(r->src(0), 0)) valid = g_.boolean(false);
  if (!counts_repeats(combine)) ranges.clear();
  if (!is_int_const(valid, 1) || !ranges.empty()) src.push_back(valid);
  src.insert(src.end(), ranges.begin(), ranges.end());
  // In the order of the loops: which stores meet is not known here.
  const int64_t ints[] = {static_cast<int64_t>(combine), 0};
  const NodeSpec spec{Op::Store, DType::Void, src, ints, {}, 1};
  if (const char* problem = node_problem(spec, static_cast<uint8_t>(Dialect::Kernel)))
    fail_type(kTag, "store to output {} ({}): {}", output, weft::name(to->dtype), problem);
  stores_.push_back(g_.make(spec));
}

KernelNumber KernelWriter::reduce(Fold fold, const KernelNumber& value,
                                  const std::vector<KernelNumber>& ranges) {
  KernelNumber x = value;
  if (x.dtype() == DType::Index) x = x.cast(DType::I64);
  std::vector<NodeRef> src{in_dtype(x, x.dtype())};
  Ranges open = value.ranges_;
  for (const KernelNumber& r : ranges) {
    if (r.dtype() != DType::Index || r.node()->op != Op::Range)
      fail(kTag, "reduce takes what range() gave");
    src.push_back(r.node());
    std::erase(open, r.node());
  }
  const int64_t ints[] = {static_cast<int64_t>(fold)};
  const NodeSpec spec{Op::Reduce, x.dtype(), src, ints, {}, 1};
  if (const char* problem = node_problem(spec, static_cast<uint8_t>(Dialect::Kernel)))
    fail_type(kTag, "reduce of {}: {}", weft::name(x.dtype()), problem);
  return number(ranges.empty() ? x.node() : g_.make(spec), std::move(open));
}

KernelNumber KernelWriter::position(const KernelNumber& value, int64_t size) {
  if (!is_int(value.dtype()))
    fail_type(kTag, "position() takes integers, not {}", weft::name(value.dtype()));
  if (size < 1) fail(kTag, "position(): a size of {} has no position", size);
  return number(g_.make(Op::ToIndex, DType::Index, {value.node(), g_.index(size)}), value.ranges_);
}

NodeRef KernelWriter::sink() {
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const bool stored = std::any_of(stores_.begin(), stores_.end(), [k](NodeRef s) {
      return param_slot(s->src(0)) == static_cast<int64_t>(k);
    });
    if (!stored) fail(kTag, "nothing is stored to output {}", k);
  }
  NodeRef sink = g_.make({Op::Sink, DType::Void, stores_});
  check_kernel(sink, kTag);
  return sink;
}

// ---- the node

namespace {

void require_static(const char* what, size_t i, const Dims& dims) {
  if (!dims.is_static())
    fail(kTag, "{} {} of shape {}: sizes must be numbers", what, i, dims.text());
}

/// It becomes part of the names of compiled code.
void require_name(const std::string& name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const bool fine =
      !name.empty() && name.size() <= 64 && letter(name[0]) &&
      std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
  if (!fine) fail(kTag, "\"{}\" is no name: use up to 64 letters, digits and underscores", name);
}

}  // namespace

Tensors custom_kernel(const std::string& name, const Tensors& inputs,
                      const std::vector<CustomOutput>& outputs,
                      const std::function<void(KernelWriter&)>& write,
                      const GradientFunction& gradient, CallSite at) {
  const CallSiteScope site(at);
  if (gradient)
    return with_gradient(
        [&](const Tensors& x) { return custom_kernel(name, x, outputs, write, {}, at); }, gradient,
        inputs, at);
  require_name(name);
  if (outputs.empty()) fail(kTag, "{} has no output", name);
  Context& context = inputs.empty() ? Context::current() : inputs[0].context();
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  std::vector<KernelWriter::Argument> in, out;
  std::vector<NodeRef> sources = nodes_of(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    require_static("input", i, inputs[i].dims());
    in.push_back({inputs[i].dims(), inputs[i].dtype()});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    require_static("output", i, outputs[i].shape);
    out.push_back({outputs[i].shape, outputs[i].dtype});
    sources.push_back(g.param(kInnerSlots + static_cast<int64_t>(i), outputs[i].dtype,
                              nodes_of(outputs[i].shape)));
  }
  KernelWriter writer(g, std::move(out), std::move(in));
  write(writer);
  sources.push_back(writer.sink());
  const int64_t ints[] = {static_cast<int64_t>(inputs.size()), 0};
  NodeRef made = g.make({Op::Custom, outputs[0].dtype, sources, ints, name});
  return results_of(context, g, made, 0, outputs.size());
}

}  // namespace weft
