// Operators that make tensors: constants, ranges, random numbers.
#include <cmath>

#include "weft/onnx/cast.h"
#include "weft/onnx/operators.h"
#include "weft/onnx/seeded.h"
#include "weft/tensor/distributions.h"

namespace weft::onnx {

namespace {

template <class T>
Value array_of(const std::vector<T>& elements, DType dtype, bool scalar) {
  const size_t size = static_cast<size_t>(bits(dtype)) / 8;
  std::vector<std::byte> bytes(elements.size() * size);
  for (size_t i = 0; i < elements.size(); ++i)
    weft::Value::of(dtype, elements[i]).store(bytes.data() + i * size);
  std::vector<int64_t> shape;
  if (!scalar) shape.push_back(static_cast<int64_t>(elements.size()));
  return Value(HostArray::owned(dtype, std::move(shape), std::move(bytes)));
}

Values constant(const NodeCall& call) {
  if (call.has("value")) return {call.constant("value")};
  if (call.has("value_float")) {
    return {array_of(std::vector{call.number("value_float")}, DType::F32, true)};
  }
  if (call.has("value_floats")) return {array_of(call.numbers("value_floats"), DType::F32, false)};
  if (call.has("value_int")) {
    return {array_of(std::vector{call.integer("value_int")}, DType::I64, true)};
  }
  if (call.has("value_ints")) return {array_of(call.ints("value_ints"), DType::I64, false)};
  if (call.has("value_string")) return {Value::strings({call.text("value_string", "")}, {})};
  if (call.has("value_strings")) {
    std::vector<std::string> texts = call.texts("value_strings");
    const auto count = static_cast<int64_t>(texts.size());
    return {Value::strings(std::move(texts), {count})};
  }
  const Attribute* sparse = call.node().find("sparse_value");
  if (!sparse || sparse->sparse.empty())
    call.refuse("a Constant needs one of the attributes value*");
  return {dense(sparse->sparse[0])};
}

Values constant_of_shape(const NodeCall& call) {
  const Dims dims = call.sizes(0);
  for (const Dim& d : dims)
    if (d.is_static() && d.value() < 0) call.refuse("the shape {} has a size below 0", dims.text());
  if (!call.has("value")) return {Tensor::zeros(dims)};
  const Value value = call.constant("value");
  const Tensor x = value.tensor();
  if (x.dims().product() != Dim(1))
    call.refuse("the value has shape {} where one element is expected", x.dims().text());
  return {Value(x.reshape({}).expand(dims), value.type())};
}

/// Of integers exact; of floats as many as fit before the limit.
Dim range_count(const NodeCall& call) {
  if (is_float(call.input(0).dtype())) {
    const double count = std::ceil((call.number(1) - call.number(0)) / call.number(2));
    if (!(std::fabs(count) < 1e15)) call.refuse("a range of {} elements", count);
    return count > 0 ? static_cast<int64_t>(count) : 0;
  }
  const Dims start = call.sizes(0), limit = call.sizes(1);
  const int64_t step = call.integer(2);
  if (step == 0) call.refuse("the step of a range is 0");
  if (start.size() != 1 || limit.size() != 1)
    call.refuse("start and limit must be one number each");
  if (step > 0) return max((limit[0] - start[0] + (step - 1)) / step, 0);
  return max((start[0] - limit[0] + (-step - 1)) / -step, 0);
}

Values range(const NodeCall& call) {
  const DType d = call.input(0).dtype();
  const Tensor places = Tensor::arange(range_count(call), is_float(d) ? DType::I64 : d);
  const Tensor start = call.tensor(0).reshape({}), step = call.tensor(2).reshape({});
  return {places.cast(d) * step + start};
}

/// The attribute dtype, or what is usual.
ElementType type_of(const NodeCall& call, ElementType usual) {
  return call.has("dtype") ? static_cast<ElementType>(call.integer("dtype")) : usual;
}

Values eye_like(const NodeCall& call) {
  const Value& x = call.input(0);
  if (x.ndim() != 2)
    call.refuse("input 0 has shape {} where a matrix is expected", x.dims().text());
  const Dims dims = x.dims();
  const Tensor row = Tensor::arange(dims[0]).reshape({dims[0], 1});
  const Tensor column = Tensor::arange(dims[1]);
  return {cast_to(column - row == call.integer("k", 0), type_of(call, x.type()))};
}

// ---- random numbers: of weft's generator

Values random_normal(const NodeCall& call, const Dims& dims, ElementType usual) {
  const double mean = call.number("mean", 0), scale = call.number("scale", 1);
  return with_seed(call, [&]() -> Values {
    return {cast_to(Tensor::normal(dims, mean, scale), type_of(call, usual))};
  });
}
Values random_uniform(const NodeCall& call, const Dims& dims, ElementType usual) {
  const double low = call.number("low", 0), high = call.number("high", 1);
  return with_seed(call, [&]() -> Values {
    return {cast_to(Tensor::uniform(dims, low, high), type_of(call, usual))};
  });
}
Values normal(const NodeCall& call) {
  return random_normal(call, Dims(call.ints("shape")), ElementType::Float);
}
Values normal_like(const NodeCall& call) {
  return random_normal(call, call.input(0).dims(), call.input(0).type());
}
Values uniform(const NodeCall& call) {
  return random_uniform(call, Dims(call.ints("shape")), ElementType::Float);
}
Values uniform_like(const NodeCall& call) {
  return random_uniform(call, call.input(0).dims(), call.input(0).type());
}
Values bernoulli_trials(const NodeCall& call) {
  return with_seed(call, [&]() -> Values {
    return {cast_to(bernoulli(call.tensor(0)), type_of(call, call.input(0).type()))};
  });
}
Values multinomial_samples(const NodeCall& call) {
  const Tensor& x = call.tensor(0);  // logarithms of probabilities
  const Tensor weights = (x - x.max({-1}, true)).exp();
  return with_seed(call, [&]() -> Values {
    return {cast_to(multinomial(weights, call.integer("sample_size", 1), true),
                    type_of(call, ElementType::Int32))};
  });
}

constexpr Operator kRows[] = {
    {kOnnx, "Bernoulli", 15, bernoulli_trials},       {kOnnx, "Constant", 1, constant},
    {kOnnx, "ConstantOfShape", 9, constant_of_shape}, {kOnnx, "EyeLike", 9, eye_like},
    {kOnnx, "Multinomial", 7, multinomial_samples},   {kOnnx, "RandomNormal", 1, normal},
    {kOnnx, "RandomNormalLike", 1, normal_like},      {kOnnx, "RandomUniform", 1, uniform},
    {kOnnx, "RandomUniformLike", 1, uniform_like},    {kOnnx, "Range", 11, range},
};

}  // namespace

std::span<const Operator> generator_operators() { return kRows; }

}  // namespace weft::onnx
