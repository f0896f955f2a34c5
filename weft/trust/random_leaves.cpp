#include "weft/trust/random_leaves.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/format.h"

namespace weft {

RandomLeaves::RandomLeaves(Graph& graph, Random& random, const RandomGraphOptions& options)
    : g_(graph), random_(random), options_(options), bindings_(1) {
  if (options.variables > 0) add_variables();
}

/// Each variable at its least value, at its largest, and somewhere.
void RandomLeaves::add_variables() {
  bindings_.resize(3);
  for (int i = 0; i < options_.variables; ++i) {
    const std::string name = strformat("n{}", i);
    const int64_t multiple = random_.chance(20) ? 2 : 1;
    const int64_t least = multiple * (random_.chance(15) ? 0 : random_.between(1, 2));
    const int64_t steps = random_.between(1, options_.longest);
    const int64_t most = least + multiple * steps;
    variables_.push_back(g_.variable(name, least, most, multiple));
    bindings_[0].variables[name] = least;
    bindings_[1].variables[name] = most;
    bindings_[2].variables[name] = least + multiple * random_.between(0, steps);
  }
}

int64_t RandomLeaves::extent(NodeRef dim, const eval::Inputs& binding) const {
  if (dim->op == Op::Const) return dim->vmin;
  return eval::evaluate(dim, {{}, {}, binding.variables}).at(0).as_int();
}

NodeRef RandomLeaves::size(int64_t least, int64_t most) {
  if (!variables_.empty() && random_.chance(50)) {
    NodeRef n = random_.pick(variables_);
    if (random_.chance(20)) return g_.add(n, g_.index(random_.between(1, 2)));
    return random_.chance(10) ? g_.mul(n, g_.index(2)) : n;
  }
  return g_.index(random_.between(least, most));
}

RandomDims RandomLeaves::shape() {
  RandomDims dims(static_cast<size_t>(random_.below(4)));
  int64_t count = 1;
  for (NodeRef& d : dims) {
    d = random_.chance(3) ? g_.index(0) : size(1, options_.longest);
    if (count * d->vmax > options_.largest) d = g_.index(1);
    count *= std::max<int64_t>(d->vmax, 1);
  }
  return dims;
}

Value RandomLeaves::value(DType d, int64_t least, int64_t most) {
  if (is_float(d) && !options_.exact) {
    if (options_.specials && random_.chance(6)) return special(d);
    return Value::of(d, static_cast<double>(random_.between(-4000, 4000)) / 512.0);
  }
  if (is_int(d) && !options_.exact && options_.specials && random_.chance(6))
    return Value::of(d, random_.chance(50) ? int_min(d) : static_cast<int64_t>(int_max(d)));
  return Value::of(d, random_.between(least, most));
}

Value RandomLeaves::special(DType d) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double values[] = {NAN,  infinity,     -infinity,          -0.0,
                           0.0,  float_max(d), -float_max(d),      1e-40,
                           1e10, -1e10,        std::ldexp(1, -24), 65520.0};
  return Value::of(d, random_.pick(values));
}

NodeRef RandomLeaves::param(DType dtype, const RandomDims& dims, int64_t least, int64_t most) {
  for (eval::Inputs& binding : bindings_) {
    eval::Extents extents;
    for (NodeRef d : dims) extents.push_back(extent(d, binding));
    eval::Array values(dtype, extents);
    for (int64_t i = 0; i < values.count(); ++i) values.set(i, value(dtype, least, most));
    binding.params.push_back(std::move(values));
  }
  return g_.param(static_cast<int64_t>(bindings_[0].params.size()) - 1, dtype, dims);
}

NodeRef RandomLeaves::number(DType dtype) {
  if (!variables_.empty() && is_int(dtype) && random_.chance(30))
    return g_.cast(random_.pick(variables_), dtype);
  return g_.constant(value(dtype, -4, 4));
}

}  // namespace weft
