#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/onnx/host.h"
#include "weft/onnx/loops.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/transforms.h"

namespace weft::onnx {
namespace {

// After so many trips what was computed lazily is run, so that graphs stay small.
constexpr size_t kTripsAtOnce = 64;
// Scans of more slices are compiled as a loop; shorter ones are laid out step by step.
constexpr int64_t kLongScan = 16;

void run_now(const Values& values) {
  std::vector<Tensor> lazy;
  for (const Value& x : values)
    if (x.kind() == Value::Kind::Tensor && !x.constant()) lazy.push_back(x.tensor());
  if (!lazy.empty()) realize(lazy);
}

Value stacked_strings(const std::vector<Value>& parts) {
  std::vector<std::string> texts;
  std::vector<int64_t> shape = static_sizes(parts[0].dims());
  for (const Value& part : parts) {
    if (!(part.dims() == parts[0].dims()))
      fail("onnx.node", "a loop gave strings of shapes {} and {}; every trip gives the same",
           parts[0].dims().text(), part.dims().text());
    texts.insert(texts.end(), part.texts().begin(), part.texts().end());
  }
  shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
  return Value::strings(std::move(texts), std::move(shape));
}

// What one output was at each trip, along a new axis.
class Stack {
 public:
  void add(const Value& x) {
    parts_.push_back(x);
    if (x.kind() != Value::Kind::Tensor || parts_.size() < kTripsAtOnce) return;
    run_now(parts_);
    joined_.push_back(joined().realize());
    parts_.clear();
  }
  bool empty() const { return parts_.empty() && joined_.empty(); }
  Value value() {
    if (parts_.size() > 0 && parts_[0].kind() == Value::Kind::Strings)
      return stacked_strings(parts_);
    if (!parts_.empty()) {
      type_ = parts_[0].type();
      joined_.push_back(joined());
    }
    while (joined_.size() > 1) {  // in few at a time
      std::vector<Tensor> wider;
      for (size_t i = 0; i < joined_.size(); i += kTripsAtOnce)
        wider.push_back(Tensor::cat({joined_.begin() + static_cast<std::ptrdiff_t>(i),
                                     joined_.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                           i + kTripsAtOnce, joined_.size()))}));
      joined_ = std::move(wider);
    }
    return Value(joined_[0], type_);
  }

 private:
  Tensor joined() {
    std::vector<Tensor> all;
    for (const Value& part : parts_) all.push_back(part.tensor());
    type_ = parts_[0].type();
    return Tensor::stack(all, 0);
  }

  std::vector<Value> parts_;
  std::vector<Tensor> joined_;
  ElementType type_ = ElementType::Float;
};

// Of no trips: as the body declares its output, unknown sizes 0.
Value nothing_of(const NodeCall& call, const DeclaredValue& output) {
  Dims dims = {Dim(0)};
  if (output.type.shape)
    for (const DeclaredDim& d : *output.type.shape) dims.push_back(Dim(d.size.value_or(0)));
  if (output.type.element == ElementType::String) return Value::strings({}, static_sizes(dims));
  const DType dtype = dtype_of(output.type.element);
  if (dtype == DType::Void)
    call.refuse("no trip is made, and the body does not say of what type its output {} is",
                quoted_name(output.name));
  return Value(Tensor::zeros(dims, dtype), output.type.element);
}

void require_body(const NodeCall& call, const Graph& body, size_t inputs, size_t outputs) {
  if (body.inputs.size() != inputs || body.outputs.size() < outputs)
    call.refuse(
        "the body has {} inputs and {} outputs; {} inputs and at least {} outputs belong "
        "to this node",
        body.inputs.size(), body.outputs.size(), inputs, outputs);
}

}  // namespace

Values loop(const NodeCall& call) {
  const Graph& body = call.graph("body");
  const int64_t trips = call.has(0) ? call.integer(0) : std::numeric_limits<int64_t>::max();
  bool go = !call.has(1) || number_now(call.input(1)) != 0;
  Values state;
  for (size_t i = 2; i < call.inputs(); ++i) state.push_back(call.has(i) ? call.input(i) : Value());
  require_body(call, body, state.size() + 2, state.size() + 1);
  std::vector<Stack> stacks(body.outputs.size() - 1 - state.size());
  for (int64_t trip = 0; go && trip < trips; ++trip) {
    if (trip == kMostTrips)
      call.refuse("ran its body {} times and would go on; this many trips are the limit", trip);
    poll_interrupt();
    Values inputs = {Value::known({Dim(trip)}, DType::I64, true),
                     Value::known({Dim(go)}, DType::Bool, true)};
    inputs.insert(inputs.end(), state.begin(), state.end());
    const Values made = call.run(body, std::move(inputs));
    go = number_now(made[0]) != 0;
    for (size_t i = 0; i < state.size(); ++i) state[i] = made[i + 1];
    for (size_t i = 0; i < stacks.size(); ++i) stacks[i].add(made[i + 1 + state.size()]);
    if (static_cast<size_t>(trip) % kTripsAtOnce == kTripsAtOnce - 1) run_now(state);
  }
  Values results = std::move(state);
  const size_t carried = results.size();
  for (size_t i = 0; i < stacks.size(); ++i)
    results.push_back(stacks[i].empty() ? nothing_of(call, body.outputs[i + 1 + carried])
                                        : stacks[i].value());
  return results;
}

namespace {

// The slices of one scanned input, first to last: axis 0 of x.
struct Scanned {
  Values state;
  std::vector<Value> stacks;  // along axis 0, in the order of the trips
};

Scanned scan_step_by_step(const NodeCall& call, Values state, const std::vector<Tensor>& xs,
                          int64_t length) {
  const Graph& body = call.graph("body");
  std::vector<Stack> stacks(body.outputs.size() - state.size());
  for (int64_t trip = 0; trip < length; ++trip) {
    poll_interrupt();
    Values inputs = state;
    for (const Tensor& x : xs) inputs.emplace_back(x[trip]);
    const Values made = call.run(body, std::move(inputs));
    for (size_t i = 0; i < state.size(); ++i) state[i] = made[i];
    for (size_t i = 0; i < stacks.size(); ++i) stacks[i].add(made[i + state.size()]);
    if (static_cast<size_t>(trip) % kTripsAtOnce == kTripsAtOnce - 1) run_now(state);
  }
  Scanned all;
  for (size_t i = 0; i < stacks.size(); ++i)
    all.stacks.push_back(stacks[i].empty() ? nothing_of(call, body.outputs[i + state.size()])
                                           : stacks[i].value());
  all.state = std::move(state);
  return all;
}

// As a loop whose body is compiled once; nothing where the body needs to know values, or changes
// the sizes of its state.
std::optional<Scanned> scan_compiled(const NodeCall& call, const Values& state,
                                     const std::vector<Tensor>& xs) {
  Tensors carried;
  for (const Value& x : state) {
    if (x.kind() != Value::Kind::Tensor) return {};
    carried.push_back(x.tensor());
  }
  const auto step = [&](const Tensors& before, const Tensors& slices) {
    Values inputs(before.begin(), before.end());
    inputs.insert(inputs.end(), slices.begin(), slices.end());
    ScanResult made;
    for (const Value& x : call.run(call.graph("body"), std::move(inputs)))
      (made.carried.size() < before.size() ? made.carried : made.stacked).push_back(x.tensor());
    return made;
  };
  try {
    const ScanResult made = weft::scan(step, carried, xs);
    return Scanned{Values(made.carried.begin(), made.carried.end()),
                   Values(made.stacked.begin(), made.stacked.end())};
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
    return {};  // step by step, which says what is wrong if anything is
  }
}

Scanned scanned(const NodeCall& call, Values state, const std::vector<Tensor>& xs, int64_t length) {
  if (length > kLongScan)
    if (std::optional<Scanned> all = scan_compiled(call, state, xs)) return *std::move(all);
  return scan_step_by_step(call, std::move(state), xs, length);
}

// How many of the inputs behind `first` are scanned.
size_t scanned_inputs(const NodeCall& call, size_t first) {
  const int64_t count = call.integer("num_scan_inputs");
  if (count < 1 || count > static_cast<int64_t>(call.inputs() - first))
    call.refuse("num_scan_inputs {} of {} inputs: 1 to as many as there are", count,
                call.inputs() - first);
  return static_cast<size_t>(count);
}

// One number for each of `count` inputs or outputs; 0 where none is given.
std::vector<int64_t> each(const NodeCall& call, std::string_view attribute, size_t count) {
  std::vector<int64_t> all = call.ints(attribute, std::vector<int64_t>(count, 0));
  if (all.size() != count)
    call.refuse("{} has {} elements and {} belong to it", attribute, all.size(), count);
  return all;
}

int64_t common_length(const NodeCall& call, const std::vector<Tensor>& xs) {
  for (const Tensor& x : xs)
    if (x.size(0) != xs[0].size(0))
      call.refuse("scanned inputs of {} and {} slices; they have equally many", xs[0].size(0),
                  x.size(0));
  return xs[0].size(0);
}

// Zeros behind the last slice, up to this many.
Tensor padded(const Tensor& x, int64_t length) {
  std::vector<DimPair> amounts(x.ndim(), DimPair(0, 0));
  amounts[0].second = Dim(length - x.size(0));
  return x.pad(amounts);
}

}  // namespace

Values scan(const NodeCall& call) {
  const size_t count = scanned_inputs(call, 0), carried = call.inputs() - count;
  const Graph& body = call.graph("body");
  require_body(call, body, call.inputs(), carried);
  const auto axes = each(call, "scan_input_axes", count);
  const auto back = each(call, "scan_input_directions", count);
  Values state;
  for (size_t i = 0; i < carried; ++i) state.push_back(call.input(i));
  std::vector<Tensor> xs;
  for (size_t i = 0; i < count; ++i) {
    const Tensor& x = call.tensor(carried + i);
    const Tensor first = movedim(x, call.axis(axes[i], x.ndim()), 0);
    xs.push_back(back[i] != 0 ? first.flip(0) : first);
  }
  Scanned all = scanned(call, std::move(state), xs, common_length(call, xs));
  const auto out_axes = each(call, "scan_output_axes", all.stacks.size());
  const auto out_back = each(call, "scan_output_directions", all.stacks.size());
  for (size_t i = 0; i < all.stacks.size(); ++i) {
    Tensor x = all.stacks[i].tensor();
    if (out_back[i] != 0) x = x.flip(0);
    all.state.emplace_back(movedim(x, 0, call.axis(out_axes[i], x.ndim())), all.stacks[i].type());
  }
  return std::move(all.state);
}

Values scan_batches(const NodeCall& call) {
  const size_t count = scanned_inputs(call, 1), carried = call.inputs() - 1 - count;
  require_body(call, call.graph("body"), call.inputs() - 1, carried);
  const auto back = each(call, "directions", count);
  const Tensor& like = call.tensor(1 + carried);
  if (like.ndim() < 2)
    call.refuse("a scanned input {} has no batch and length", like.dims().text());
  const int64_t batch = like.size(0), longest = like.size(1);
  const std::vector<int64_t> lengths =
      call.has(0) ? call.ints(0) : std::vector<int64_t>(static_cast<size_t>(batch), longest);
  if (static_cast<int64_t>(lengths.size()) != batch)
    call.refuse("{} sequence lengths for a batch of {}", lengths.size(), batch);
  std::vector<std::vector<Tensor>> results;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    if (length < 0 || length > longest)
      call.refuse("sequence length {} of at most {}", length, longest);
    Values state;
    for (size_t i = 0; i < carried; ++i) state.emplace_back(call.tensor(1 + i)[b]);
    std::vector<Tensor> xs;
    for (size_t i = 0; i < count; ++i) {
      const Tensor x = call.tensor(1 + carried + i)[b][Slice(Dim(length))];
      xs.push_back(back[i] != 0 ? x.flip(0) : x);
    }
    Scanned all = scanned(call, std::move(state), xs, length);
    results.resize(all.state.size() + all.stacks.size());
    for (size_t i = 0; i < all.state.size(); ++i) results[i].push_back(all.state[i].tensor());
    for (size_t i = 0; i < all.stacks.size(); ++i)
      results[all.state.size() + i].push_back(padded(all.stacks[i].tensor(), longest));
  }
  Values stacked;
  for (const auto& result : results) stacked.emplace_back(Tensor::stack(result, 0));
  return stacked;
}

}  // namespace weft::onnx
