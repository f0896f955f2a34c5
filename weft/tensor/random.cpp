// Random numbers: threefry2x32 over a counter that is itself a tensor, so that capture replays it.
#include "weft/tensor/random.h"

#include <array>
#include <cmath>
#include <numbers>

#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/run/active_capture.h"
#include "weft/tensor/tracing.h"

namespace weft {

Generator& Generator::of(Context& context) {
  // Made before us, so destroyed after us: what our tensors lie in. Not by our constructor, which
  // runs under the context's lock: opening a device takes that inside of its own.
  context.get<BufferTable>();
  context.get<LiveCells>();
  context.get<DeviceTable>().default_device();
  return context.get<Generator>();
}

namespace {

Tensor key_of(uint64_t seed) {
  const std::array<uint32_t, 2> words{static_cast<uint32_t>(seed),
                                      static_cast<uint32_t>(seed >> 32)};
  return Tensor::from(std::span<const uint32_t>(words), {2});
}

}  // namespace

void Generator::seed(uint64_t value) {
  std::lock_guard lock(mutex_);
  set_seed(value);
}

void Generator::set_seed(uint64_t value) {
  const ContextScope scope(context_);
  const Tensor key = key_of(value);
  // Data, not a constant: a number that kernels know would be another one after every draw.
  const Tensor draws = Tensor::from(std::vector<uint32_t>{0}, {});
  settled_ = false;
  // Where they lie already, so that what was captured hears of it; a capture that seeds has its
  // own.
  const bool lies_here = draws_.defined() && draws_.device() == draws.device();
  if (!lies_here || active_capture(context_)) {
    key_ = key;
    draws_ = draws;
    return;
  }
  key_.cell()->set_value(key.node());
  draws_.cell()->set_value(draws.node());
}

namespace {

/// The memory and the number of which `counter` is the sum; null where it is another expression.
struct Counted {
  NodeRef base;
  uint32_t more;
};
Counted counted(NodeRef counter) {
  const bool is_sum = counter->op == Op::Add && is_const(counter->src(1));
  return is_sum ? Counted{counter->src(0), static_cast<uint32_t>(counter->src(1)->vmin)}
                : Counted{counter, 0};
}

}  // namespace

Tensor Generator::settle() {
  const bool captures = active_capture(context_) != nullptr;
  if (!captures && settled_) return {};
  std::lock_guard lock(mutex_);
  if (!draws_.defined()) return {};
  settled_ = draws_.cell()->realized();
  if (!captures && settled_) return {};
  const OpScope scope(draws_, CallSite::here());
  const Counted c = counted(draws_.node());
  // In a capture the counter is computed: a replay has another one.
  if (captures || c.base->op != Op::Buffer) return draws_;
  if (c.more == 0) return {};
  // Not by a kernel, which would run without the lock: others would draw the same numbers
  // meanwhile.
  const auto buffer = context_.get<BufferTable>().find(buffer_id(c.base));
  uint32_t number = 0;
  buffer->device().copy_out(std::as_writable_bytes(std::span(&number, 1)), {buffer.get(), 0});
  number += c.more;
  draws_.cell()->set_value(buffer_from_bytes(context_, std::as_bytes(std::span(&number, 1)),
                                             DType::U32, {}, buffer->device().id()));
  return {};
}

void Generator::settle(Context& context, std::vector<std::shared_ptr<Storage>>& storages) {
  if (Generator* generator = context.get_if<Generator>())
    if (auto draws = TensorAccess::shared(generator->settle()))
      storages.push_back(std::move(draws));
}

namespace {
thread_local DrawScope* t_draws = nullptr;
}

DrawScope::DrawScope(Tensor first)
    : outer_(t_draws), first_(std::move(first)), key_(outer_ ? outer_->key_ : Tensor()) {
  t_draws = this;
}
DrawScope::DrawScope(uint64_t seed) : DrawScope(key_of(seed), Tensor::full({}, 0, DType::U32)) {}
DrawScope::DrawScope(Tensor key, Tensor first) : DrawScope(std::move(first)) {
  key_ = std::move(key);
}
DrawScope::~DrawScope() { t_draws = outer_; }

Tensor DrawScope::key() { return t_draws ? t_draws->key_ : Tensor(); }

Tensor DrawScope::next(uint32_t count) {
  if (!t_draws) return {};
  const uint32_t before = t_draws->count_;
  t_draws->count_ += count;
  return t_draws->first_ + int64_t{before};
}

Generator::Draw Generator::next() { return reserve(1); }

Generator::Draw Generator::reserve(uint32_t count) {
  std::lock_guard lock(mutex_);
  if (!draws_.cell()) set_seed(static_cast<uint64_t>(context_.options().seed));
  if (const Tensor number = DrawScope::next(count); number.defined())
    return {DrawScope::key().defined() ? DrawScope::key() : key_, number};
  const Tensor now = Tensor::from_node(draws_.node());
  const OpScope scope(now, CallSite::here());
  // x + 1 + 1 stays x + 2: the counter must not grow while nothing is realized.
  const Counted c = counted(now.node());
  NodeRef step = scope.g.constant(Value::of(DType::U32, uint64_t{c.more} + count));
  draws_.cell()->set_value(scope.g.add(c.base, step));
  settled_ = false;
  return {key_, now};
}

Tensor Generator::number() {
  std::lock_guard lock(mutex_);
  if (!draws_.cell()) set_seed(static_cast<uint64_t>(context_.options().seed));
  return Tensor::from_node(draws_.node());
}

void Tensor::manual_seed(uint64_t seed) { Generator::of(Context::current()).seed(seed); }

// ---- threefry

namespace {

Tensor rotated(const Tensor& x, int64_t by) { return (x << by) | (x >> (32 - by)); }

void require_words(const Tensor& x) {
  if (x.dtype() != DType::U32)
    fail_type("threefry2x32", "keys and counters are u32: got {} of shape {}", name(x.dtype()),
              x.dims().text());
}

}  // namespace

std::pair<Tensor, Tensor> Tensor::threefry2x32(const Tensor& key0, const Tensor& key1,
                                               const Tensor& counter0, const Tensor& counter1,
                                               CallSite at) {
  const CallSiteScope site(at);
  for (const Tensor* t : {&key0, &key1, &counter0, &counter1}) require_words(*t);
  constexpr int64_t kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Tensor keys[] = {key0, key1, key0 ^ key1 ^ 0x1BD11BDA};
  Tensor x0 = counter0 + keys[0], x1 = counter1 + keys[1];
  for (int64_t group = 0; group < 5; ++group) {
    for (const int64_t by : kRotations[group % 2]) {
      x0 = x0 + x1;
      x1 = rotated(x1, by) ^ x0;
    }
    x0 = x0 + keys[(group + 1) % 3];
    x1 = x1 + keys[(group + 2) % 3] + (group + 1);
  }
  return {x0, x1};
}

namespace {

using Words = std::pair<Tensor, Tensor>;

/// What `make` makes of two random words for every element of `shape`: counter (element, draw).
/// `name` and `options` say all about it.
Tensor drawn(const char* name, const Dims& shape, const Ints& options,
             const std::function<Tensor(const Words&)>& make) {
  require_sizes("rand", shape);
  Context& context = Context::current();
  const Generator::Draw draw = Generator::of(context).next();
  const Dim count = shape.product();
  if (count.max() > INT32_MAX)
    fail("rand", "shape {} has more than 2^31 elements: draw it in parts", shape.text());
  const TensorFunction f = [&](const Tensors& in) {
    const Tensor element = Tensor::arange(count, DType::U32).reshape(shape);
    const Tensor key0 = in[0].index({0}), key1 = in[0].index({1});
    return Tensors{make(Tensor::threefry2x32(key0, key1, element, in[1]))};
  };
  const Tensors inputs{draw.key, draw.number};
  Ints what = options;
  for (const Dim& d : shape) {
    if (!d.is_static()) return f(inputs)[0];
    what.push_back(d.value());
  }
  return called(name, what, inputs, f)[0];
}

/// [0, 1) on a grid of as many bits as the dtype's significand has.
Tensor unit_interval(const Words& words, DType dtype) {
  const int digits = float_digits(dtype);
  if (dtype != DType::F64)
    return (words.first >> (32 - digits)).cast(dtype) * std::ldexp(1.0, -digits);
  const Tensor high = (words.first >> 5).cast(DType::F64),
               low = (words.second >> 6).cast(DType::F64);
  return (high * 67108864.0 + low) * 0x1p-53;
}

void require_random_float(const char* tag, DType dtype) {
  if (!is_float(dtype))
    fail_type(tag, "makes floating-point numbers, not {}: use randint() or cast()", name(dtype));
}

/// Sizes a weight of this shape connects: inputs and outputs.
std::pair<double, double> fans(const char* tag, const Dims& shape) {
  if (shape.size() < 2)
    fail(tag, "shape {} has no inputs and outputs: give at least 2 axes", shape.text());
  double field = 1;
  for (size_t i = 2; i < shape.size(); ++i) field *= static_cast<double>(shape[i].value());
  return {static_cast<double>(shape[1].value()) * field,
          static_cast<double>(shape[0].value()) * field};
}

}  // namespace

// ---- distributions

Tensor Tensor::rand(const Dims& shape, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  require_random_float("rand", dtype);
  return drawn("rand", shape, {static_cast<int64_t>(dtype)},
               [=](const Words& words) { return unit_interval(words, dtype); });
}

Tensor Tensor::uniform(const Dims& shape, double low, double high, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  if (!(low <= high)) fail("uniform", "the range [{}, {}) is empty", low, high);
  const DType run = sum_dtype(dtype);
  return (rand(shape, run) * (high - low) + low).cast(dtype);
}

namespace {

bool holds(DType dtype, int64_t v) {
  const int64_t width = bits(dtype) - (is_unsigned(dtype) ? 0 : 1);
  if (is_unsigned(dtype) && v < 0) return false;
  return width >= 63 || v >> width == (v < 0 ? -1 : 0);
}

}  // namespace

Tensor Tensor::randint(int64_t low, int64_t high, const Dims& shape, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  if (!is_int(dtype)) fail_type("randint", "makes integers, not {}", name(dtype));
  if (low >= high) fail("randint", "the range [{}, {}) is empty", low, high);
  const auto width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (width > uint64_t{1} << 32)
    fail("randint", "the range [{}, {}) has more than 2^32 numbers", low, high);
  if (!holds(dtype, low) || !holds(dtype, high - 1))
    fail("randint", "{} does not hold all numbers of the range [{}, {}): choose another dtype",
         name(dtype), low, high);
  // The high half of a 32 x 32 bit product: each number within 2^-32 of equally likely.
  return drawn("randint", shape, {low, high, static_cast<int64_t>(dtype)}, [=](const Words& words) {
    const Tensor scaled = (words.first.cast(DType::U64) * width) >> 32;
    return (scaled.cast(DType::I64) + low).cast(dtype);
  });
}

Tensor Tensor::randn(const Dims& shape, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  require_random_float("randn", dtype);
  // Box and Muller 1958; 1 - u is in (0, 1], so the logarithm is finite.
  const DType run = dtype == DType::F64 ? DType::F64 : DType::F32;
  return drawn("randn", shape, {static_cast<int64_t>(dtype)}, [=](const Words& words) {
    const Tensor u = unit_interval(words, run), v = unit_interval({words.second, words.first}, run);
    const Tensor radius = ((1 - u).log() * -2).sqrt();
    return (radius * (v * (2 * std::numbers::pi)).sin()).cast(dtype);
  });
}

Tensor Tensor::normal(const Dims& shape, double mean, double std, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  if (!(std >= 0)) fail("normal", "the standard deviation {} is negative", std);
  return (randn(shape, sum_dtype(dtype)) * std + mean).cast(dtype);
}

Tensor Tensor::kaiming_uniform(const Dims& shape, double a, CallSite at) {
  const CallSiteScope site(at);
  const double bound = std::sqrt(6 / ((1 + a * a) * fans("kaiming_uniform", shape).first));
  return uniform(shape, -bound, bound);
}

Tensor Tensor::kaiming_normal(const Dims& shape, double a, CallSite at) {
  const CallSiteScope site(at);
  return normal(shape, 0, std::sqrt(2 / ((1 + a * a) * fans("kaiming_normal", shape).first)));
}

Tensor Tensor::glorot_uniform(const Dims& shape, CallSite at) {
  const CallSiteScope site(at);
  const auto [in, out] = fans("glorot_uniform", shape);
  const double bound = std::sqrt(6 / (in + out));
  return uniform(shape, -bound, bound);
}

Tensor Tensor::randperm(int64_t n, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  if (n < 0) fail("randperm", "{} elements: give at least 0", n);
  return drawn("randperm", {n}, {static_cast<int64_t>(dtype)},
               [=](const Words& words) { return words.first.argsort().cast(dtype); });
}

}  // namespace weft
