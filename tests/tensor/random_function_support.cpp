#include "tests/tensor/random_function.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/selection.h"

namespace weft {
namespace {

constexpr int64_t kLargest = 80;  // elements of a value
constexpr size_t kMostAxes = 4;

Dims with(const Tensor& x, int64_t axis, int64_t size) {
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = size;
  return dims;
}

std::vector<double> numbers(Random& random, int64_t count, double reach) {
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(reach * (static_cast<double>(random.next() >> 11) * 0x1p-52 - 1));
  return out;
}

}  // namespace

RandomFunction::RandomFunction(uint64_t seed, int64_t least_steps, int64_t most_steps, DType dtype)
    : seed_(seed), dtype_(dtype), random_(seed) {
  steps_ = random_.between(least_steps, most_steps);
  const int64_t rank = random_.between(1, 3);
  for (int64_t a = 0; a < rank; ++a) shape_.push_back(random_.between(2, rank < 3 ? 7 : 4));
}

Tensor RandomFunction::point(uint64_t seed, int64_t count) const {
  Random random(seed_ ^ seed << 32);
  Dims dims = shape_;
  if (count > 0) dims.insert(0, count);
  const int64_t size = dims.product().value();
  return Tensor::from(numbers(random, size, 2), dims).cast(dtype_).contiguous();
}

Tensor RandomFunction::operator()(const Tensor& x) {
  random_ = Random(seed_ + 1);
  pool_ = {x};
  used_ = {false};
  text_.clear();
  while (pool_.size() <= static_cast<size_t>(steps_)) step();
  Tensor sum;
  for (size_t i = 0; i < pool_.size(); ++i) {
    if (used_[i]) continue;
    const Tensor part = (pool_[i] * noise(pool_[i].dims())).sum();
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

void RandomFunction::step() {
  constexpr Method anything[] = {&RandomFunction::elementwise, &RandomFunction::elementwise,
                                 &RandomFunction::combine, &RandomFunction::regroup};
  constexpr Method along_axes[] = {
      &RandomFunction::running,   &RandomFunction::running, &RandomFunction::normalise,
      &RandomFunction::normalise, &RandomFunction::reduce,  &RandomFunction::reduce,
      &RandomFunction::sort,      &RandomFunction::look_up, &RandomFunction::scatter,
      &RandomFunction::move,      &RandomFunction::move,    &RandomFunction::window};
  const auto last = static_cast<int64_t>(pool_.size()) - 1;
  const auto i = static_cast<size_t>(random_.chance(65) ? last : random_.below(last + 1));
  const Tensor x = pool_[i];
  const std::vector<bool> used = used_;
  const size_t length = text_.size();
  text_ += strformat("v{} = ", pool_.size());
  const bool folds = x.ndim() > 0 && random_.chance(75);
  const Tensor y = (this->*(folds ? random_.pick(along_axes) : random_.pick(anything)))(x);
  if (y.numel() == 0 || y.numel() > kLargest || y.ndim() > kMostAxes) {
    used_ = used;
    return text_.resize(length);
  }
  used_[i] = true;
  pool_.push_back(y);
  used_.push_back(false);
  text_ += strformat(" of v{}: {}\n", i, y.dims().text());
}

// ---- what is drawn

Tensor RandomFunction::noise(const Dims& dims) {
  return Tensor::from(numbers(random_, dims.product().value(), 1), dims).cast(dtype_);
}

Tensor RandomFunction::positions(const Dims& dims, int64_t below) {
  std::vector<int64_t> out(static_cast<size_t>(dims.product().value()));
  for (int64_t& p : out) p = random_.below(below);
  return Tensor::from(out, dims);
}

int64_t RandomFunction::axis_of(const Tensor& x) {
  return random_.below(static_cast<int64_t>(x.ndim()));
}

/// Another value of x's shape.
Tensor RandomFunction::partner(const Tensor& x) {
  std::vector<size_t> fitting;
  for (size_t i = 0; i < pool_.size(); ++i)
    if (pool_[i].dims() == x.dims()) fitting.push_back(i);
  const size_t i = random_.pick(fitting);
  used_[i] = true;
  text_ += strformat("with v{} ", i);
  return pool_[i];
}

int64_t RandomFunction::choice(const char* name, int64_t of) {
  const int64_t chosen = random_.below(of);
  text_ += strformat("{} {}", name, chosen);
  return chosen;
}

// ---- steps

Tensor RandomFunction::elementwise(const Tensor& x) {
  switch (choice("elementwise", 13)) {
    case 0: return x.tanh();
    case 1: return x.sigmoid();
    case 2: return x.sin();
    case 3: return (x * x * -0.5).exp();
    case 4: return (x * x + 0.5).log();
    case 5: return (x * x + 0.3).sqrt();
    case 6: return x.relu();
    case 7: return x + noise(x.dims());
    case 8: return x * noise(x.dims());
    case 9: return 1 / (x * x + 1);
    case 10: return (x + noise(x.dims())).abs();
    case 11: return (x + noise(x.dims())).clamp(-0.8, 0.9);
    default: return x.erf();
  }
}

Tensor RandomFunction::combine(const Tensor& x) {
  const Tensor y = partner(x);
  switch (choice("combine", 7)) {
    case 0: return x + y;
    case 1: return x - y * 0.5;
    case 2: return x * y.tanh();
    case 3: return x / (y * y + 0.7);
    case 4: return (y + noise(y.dims()) > 0).where(x, y);
    case 5: return (x + noise(x.dims())).maximum(y);
    default: break;
  }
  if (x.ndim() == 0) return x * y.sin();
  const int64_t n = x.size(-1);
  return x.matmul(noise({n, random_.between(1, 4)}) / n) + y.sum() * 0.1;
}

Tensor RandomFunction::running(const Tensor& x) {
  const int64_t axis = axis_of(x);
  if (random_.chance(70)) return running_of(x, axis);
  text_ += "backwards ";
  return running_of(x.flip(axis), axis).flip(axis);
}

Tensor RandomFunction::running_of(const Tensor& x, int64_t axis) {
  text_ += strformat("along {} ", axis);
  switch (choice("running", 7)) {
    case 0: return x.cumsum(axis);
    case 1: return (x.tanh() * 0.5 + 1).cumprod(axis);
    case 2: return x.tanh().relu().cumprod(axis);
    case 3: return (x + noise(x.dims())).cummax(axis);
    case 4: return (x + noise(x.dims())).cummin(axis);
    case 5: return cummax(x + noise(x.dims()), axis).values;
    default: return logcumsumexp(x, axis);
  }
}

Tensor RandomFunction::normalise(const Tensor& x) {
  const int64_t axis = axis_of(x);
  text_ += strformat("along {} ", axis);
  switch (choice("normalise", 8)) {
    case 0: return x.softmax(axis);
    case 1: return x.log_softmax(axis);
    // Of equal numbers it shows nothing but their rounding, 300 times as large.
    case 2: return (x * 2 + noise(x.dims())).layernorm(axis);
    case 3: return x / ((x * x).sum(axis, true) + 0.1).sqrt();
    case 4: return x.sigmoid() / x.sigmoid().sum(axis, true);
    case 5: return x - (x + noise(x.dims())).max(axis, true);
    case 6: return x - x.logsumexp(axis, true);
    default: return x / (x.var(axis, true, 0) + 1);
  }
}

Tensor RandomFunction::reduce(const Tensor& x) {
  const int64_t axis = axis_of(x);
  const bool keep = random_.chance(40);
  text_ += strformat("along {} ", axis);
  Tensor y;
  switch (choice("reduce", 7)) {
    case 0: y = x.sum(axis, keep); break;
    case 1: y = x.mean(axis, keep); break;
    case 2: y = (x.tanh() * 0.5 + 1).prod(axis, keep); break;
    case 3: y = x.relu().tanh().prod(axis, keep); break;
    case 4: y = (x + noise(x.dims())).max(axis, keep); break;
    case 5: y = x.logsumexp(axis, keep); break;
    default: y = ((x + noise(x.dims())).var(axis, keep, 0) + 0.1).sqrt(); break;
  }
  if (random_.chance(40)) return y;
  text_ += " beside it";
  return x * (keep ? y : y.unsqueeze(axis)).tanh();
}

Tensor RandomFunction::sort(const Tensor& x) {
  const int64_t axis = axis_of(x);
  const bool down = random_.chance(50);
  const Tensor keys = x + noise(x.dims());
  text_ += strformat("along {} ", axis);
  switch (choice("sort", 4)) {
    case 0: return keys.sort(axis, down).first;
    case 1: return keys.topk((x.size(axis) + 1) / 2, axis).first;
    case 2: return x.gather(axis, keys.argsort(axis, down));
    default: return x.gather(axis, keys.argmax(axis, true));
  }
}

Tensor RandomFunction::look_up(const Tensor& x) {
  const int64_t axis = axis_of(x), n = x.size(axis), some = random_.between(1, n + 1);
  text_ += strformat("along {} ", axis);
  switch (choice("look up", 3)) {
    case 0: return x.gather(axis, positions(with(x, axis, some), n));
    case 1: return x.index_select(axis, positions({some}, n));
    default: return x.roll(some, axis) - x * 0.5;
  }
}

Tensor RandomFunction::scatter(const Tensor& x) {
  const int64_t axis = axis_of(x), n = x.size(axis);
  const Dims dims = with(x, axis, random_.between(1, n + 1));
  const Tensor at = positions(dims, n);
  text_ += strformat("along {} ", axis);
  switch (choice("scatter", 5)) {
    case 0: return (x * 0.5).scatter(axis, at, x.gather(axis, at).tanh(), Fold::Add);
    case 1: return x.sin().scatter(axis, at, x.gather(axis, at) * noise(dims), Fold::Set);
    case 2: return x.scatter(axis, at, x.gather(axis, at) + noise(dims), Fold::Max);
    case 3: return x.scatter(axis, at, x.gather(axis, at).sigmoid() + 0.5, Fold::Mul);
    default:
      return scatter_reduce(x, axis, at, x.gather(axis, at).cos(), ScatterReduce::Mean,
                            random_.chance(50));
  }
}

Tensor RandomFunction::move(const Tensor& x) {
  const int64_t axis = axis_of(x), other = axis_of(x);
  text_ += strformat("along {} {} ", axis, other);
  std::vector<DimPair> amounts;
  std::vector<Index> part;
  for (size_t a = 0; a < x.ndim(); ++a) {
    const int64_t n = x.size(static_cast<int64_t>(a));
    amounts.emplace_back(random_.below(2), random_.below(3));
    part.push_back(Slice(random_.below((n + 1) / 2), n, random_.between(1, 2)));
  }
  switch (choice("move", 6)) {
    case 0: return x.transpose(axis, other);
    case 1: return x.flip(axis);
    case 2: return x.pad(amounts, 0.25);
    case 3: return x.index(part);
    case 4: return x.roll(random_.between(1, 3), axis);
    default: return Tensor::cat({x, x.flip(other).split((x.size(axis) + 1) / 2, axis)[0]}, axis);
  }
}

/// Axes merged, split, new ones.
Tensor RandomFunction::regroup(const Tensor& x) {
  const int64_t at = random_.below(static_cast<int64_t>(x.ndim()) + 1), k = random_.between(2, 3);
  Dims more = x.dims();
  more.insert(static_cast<size_t>(at), k);
  switch (choice("regroup", 5)) {
    case 0: return x.unsqueeze(at).expand(more);
    case 1: return x.unsqueeze(at) * noise(more);
    case 2: return Tensor::stack({x, x.sin()}, at);
    case 3: return x.ndim() > 1 ? x.flatten(0, 1) : x.reshape({-1, 1});
    default: return x.numel() % k == 0 ? x.reshape({k, -1}) : x.reshape({-1});
  }
}

Tensor RandomFunction::window(const Tensor& x) {
  const int64_t axis = axis_of(x);
  const int64_t size = random_.between(1, std::min<int64_t>(3, x.size(axis)));
  const int64_t stride = random_.between(1, 2);
  text_ += strformat("along {} size {} stride {} ", axis, size, stride);
  const Tensor seen = x.window(axis, size, stride);
  switch (choice("window", 4)) {
    case 0: return seen;
    case 1: return seen.sum(-1);
    case 2: return (seen + noise(seen.dims())).max(-1);
    default: return (seen.tanh() + 0.5).prod(-1);
  }
}

}  // namespace weft
