// Branches, sequences and optionals. Loops are in loop_operators.cpp.
#include "weft/onnx/host.h"
#include "weft/onnx/loops.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {
namespace {

Values if_else(const NodeCall& call) {
  const bool yes = number_now(call.input(0)) != 0;
  return call.run(call.graph(yes ? "then_branch" : "else_branch"), {});
}

// ---- sequences

// A position in a sequence of this length, or (insert) behind its end.
size_t position(const NodeCall& call, size_t input, size_t length, bool insert) {
  const int64_t at = call.integer(input), n = static_cast<int64_t>(length);
  if (at < -n || at >= n + insert)
    call.refuse("position {} in a sequence of {}: {} to {}", at, n, -n, n - 1 + insert);
  return static_cast<size_t>(at < 0 ? at + n : at);
}

Values sequence_at(const NodeCall& call) {
  const auto& all = call.sequence(0);
  return {all[position(call, 1, all.size(), false)]};
}

Values sequence_construct(const NodeCall& call) {
  std::vector<Value> all;
  for (size_t i = 0; i < call.inputs(); ++i) all.push_back(call.input(i));
  return {Value::sequence(std::move(all))};
}

Values sequence_empty(const NodeCall&) { return {Value::sequence({})}; }

Values sequence_erase(const NodeCall& call) {
  std::vector<Value> all = call.sequence(0);
  if (all.empty()) call.refuse("the sequence is empty: it has nothing to be erased");
  const size_t at = call.has(1) ? position(call, 1, all.size(), false) : all.size() - 1;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
  return {Value::sequence(std::move(all))};
}

Values sequence_insert(const NodeCall& call) {
  std::vector<Value> all = call.sequence(0);
  const size_t at = call.has(2) ? position(call, 2, all.size(), true) : all.size();
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), call.input(1));
  return {Value::sequence(std::move(all))};
}

Values sequence_length(const NodeCall& call) {
  return {Value::known({Dim(call.sequence(0).size())}, DType::I64, true)};
}

// The body once for each element of the first sequence; tensors among the inputs are the same for
// all.
Values sequence_map(const NodeCall& call) {
  const size_t count = call.sequence(0).size();
  std::vector<std::vector<Value>> results(call.outputs());
  for (size_t n = 0; n < count; ++n) {
    Values inputs;
    for (size_t i = 0; i < call.inputs(); ++i) {
      const bool each = call.input(i).kind() == Value::Kind::Sequence;
      if (each && call.sequence(i).size() != count)
        call.refuse("sequences of {} and {} elements have the same length", count,
                    call.sequence(i).size());
      inputs.push_back(each ? call.sequence(i)[n] : call.input(i));
    }
    const Values made = call.run(call.graph("body"), std::move(inputs));
    for (size_t i = 0; i < results.size() && i < made.size(); ++i) results[i].push_back(made[i]);
  }
  Values sequences;
  for (auto& result : results) sequences.push_back(Value::sequence(std::move(result)));
  return sequences;
}

// The sizes that an axis of n is cut into.
std::vector<int64_t> pieces(const NodeCall& call, int64_t n) {
  if (!call.has(1)) return std::vector<int64_t>(static_cast<size_t>(n), 1);
  std::vector<int64_t> sizes = call.ints(1);
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > n) call.refuse("split {} of an axis of {}: 0 to its size", size, n);
    sum += size;
  }
  if (call.input(1).ndim() != 0) {
    if (sum != n) call.refuse("splits add up to {}, and the axis has {}: make them equal", sum, n);
    return sizes;
  }
  if (sum == 0) call.refuse("split 0: pieces have at least one element");
  std::vector<int64_t> equal(static_cast<size_t>(n / sum), sum);
  if (n % sum != 0) equal.push_back(n % sum);
  return equal;
}

Values split_to_sequence(const NodeCall& call) {
  const Value& x = call.input(0);
  const int64_t axis = call.axis(call.integer("axis", 0), x.ndim());
  const bool squeeze = !call.has(1) && call.integer("keepdims", 1) == 0;
  const std::vector<int64_t> sizes = pieces(call, x.dims()[static_cast<size_t>(axis)].value());
  std::vector<Value> all;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    std::vector<Index> at(static_cast<size_t>(axis), Index(Slice()));
    at.emplace_back(squeeze ? Index(begin) : Index(Slice(Dim(begin), Dim(begin + size))));
    all.push_back(moved(x, [&](const Tensor& t) { return t.index(at); }));
    begin += size;
  }
  return {Value::sequence(std::move(all))};
}

Values concat_from_sequence(const NodeCall& call) {
  std::vector<Tensor> parts;
  for (const Value& x : call.sequence(0)) {
    if (x.kind() != Value::Kind::Tensor) call.refuse("the sequence holds what is no tensor");
    parts.push_back(x.tensor());
  }
  if (parts.empty()) call.refuse("the sequence is empty: there is nothing to be joined");
  const bool stack = call.integer("new_axis", 0) != 0;
  const int64_t axis = call.axis(call.integer("axis"), parts[0].ndim() + stack);
  const Tensor joined = stack ? Tensor::stack(parts, axis) : Tensor::cat(parts, axis);
  return {Value(joined, call.sequence(0)[0].type())};
}

// ---- optionals

Values optional(const NodeCall& call) {
  return {Value::optional(call.has(size_t{0}) ? call.input(0) : Value())};
}

Values optional_get_element(const NodeCall& call) {
  if (call.input(0).kind() != Value::Kind::Optional) return {call.input(0)};
  if (call.input(0).elements().empty())
    call.refuse("the optional is empty; ask OptionalHasElement before");
  return {call.input(0).elements()[0]};
}

Values optional_has_element(const NodeCall& call) {
  const bool given = call.has(size_t{0}) && (call.input(0).kind() != Value::Kind::Optional ||
                                             !call.input(0).elements().empty());
  return {Value::known({Dim(given)}, DType::Bool, true)};
}

}  // namespace

std::span<const Operator> control_operators() {
  static constexpr Operator kRows[] = {
      {kOnnx, "ConcatFromSequence", 11, concat_from_sequence},
      {kOnnx, "If", 1, if_else},
      {kOnnx, "Loop", 1, loop},
      {kOnnx, "Optional", 15, optional},
      {kOnnx, "OptionalGetElement", 15, optional_get_element},
      {kOnnx, "OptionalHasElement", 15, optional_has_element},
      {kOnnx, "Scan", 8, scan_batches},
      {kOnnx, "Scan", 9, scan},
      {kOnnx, "SequenceAt", 11, sequence_at},
      {kOnnx, "SequenceConstruct", 11, sequence_construct},
      {kOnnx, "SequenceEmpty", 11, sequence_empty},
      {kOnnx, "SequenceErase", 11, sequence_erase},
      {kOnnx, "SequenceInsert", 11, sequence_insert},
      {kOnnx, "SequenceLength", 11, sequence_length},
      {kOnnx, "SequenceMap", 17, sequence_map},
      {kOnnx, "SplitToSequence", 11, split_to_sequence},
  };
  return kRows;
}

}  // namespace weft::onnx
