// Tensors from data, constants, sequences and random numbers.

#include "weft/python/creation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "weft/base/context.h"
#include "weft/io/disk.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/run/active_capture.h"
#include "weft/tensor/access.h"
#include "weft/tensor/distributions.h"

namespace weft::python {

Tensor placed(Tensor t, const Placement& where) {
  if (where.device) {
    if (const auto path = disk_path(where.device->text)) {
      const Released released;
      return stored_on_disk(t, *path);
    }
    t = t.to(where.device->text, CallSite());
  }
  if (where.requires_grad.has_value()) {
    if (*where.requires_grad)
      t.requires_grad_(true, CallSite());
    else
      offer_leaf(t, false);
    return t;
  }
  // A leaf made while capturing would be one of the capture alone.
  const bool whole = is_float(t.dtype()) && !t.is_view();
  if (where.distinct && whole && !active_capture(t.context())) offer_leaf(t, true);
  return t;
}

Dims dims_of_args(const nb::args& args) {
  Dims dims;
  if (args.size() > 1 && PySequence_Check(nb::handle(args[0]).ptr()))
    throw nb::value_error("sizes are one list, or one by one: (2, 3), or 2, 3");
  PyObject* from = args.size() == 1 ? nb::handle(args[0]).ptr() : args.ptr();
  if (!to_dims(from, dims))
    throw nb::type_error("sizes are ints or bound Variables: (2, 3), or 2, 3");
  return dims;
}

namespace {

DType float_or(std::optional<DType> given) { return given.value_or(default_dtypes().floats); }
DType int_or(std::optional<DType> given) { return given.value_or(default_dtypes().ints); }

DType dtype_of(const Scalar& s) {
  if (s.is_bool()) return DType::Bool;
  if (s.is_float()) return default_dtypes().floats;
  return bits(s.default_dtype()) == 64 ? s.default_dtype() : default_dtypes().ints;
}

/// Constants of floats have memory of their own: equal constants would be one leaf. Virtual ones
/// (buffer=False, sizes that are no numbers, inside of a capture) take no memory and fold.
Tensor filled(const Dims& shape, const Scalar& value, DType dtype, bool buffer,
              const Placement& where) {
  const bool is_virtual =
      !buffer || !is_float(dtype) || !shape.is_static() || active_capture(Context::current());
  Placement place = where;
  place.distinct = !is_virtual;
  if (is_virtual) return placed(Tensor::full(shape, value, dtype, CallSite()), place);
  for (const Dim& d : shape)
    if (d.value() < 0) return Tensor::full(shape, value, dtype, CallSite());  // its error
  const int64_t count = shape.product().value();
  constexpr int64_t kNobodyHas = int64_t{1} << 56;
  if (count > kNobodyHas) return Tensor::full(shape, value, dtype, CallSite());  // likewise
  const auto size = static_cast<size_t>(bits(dtype) / 8);
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size);
  std::byte one[8];
  value.as(dtype).store(one);
  // They are 0 already; other numbers are copied together with their copies.
  const bool is_zero = std::all_of(one, one + size, [](std::byte b) { return b == std::byte{0}; });
  if (!is_zero && !bytes.empty()) std::memcpy(bytes.data(), one, size);
  for (size_t done = size; !is_zero && done < bytes.size(); done *= 2)
    std::memcpy(bytes.data() + done, bytes.data(), std::min(done, bytes.size() - done));
  return placed(Tensor::from_bytes(bytes, dtype, shape, CallSite()), place);
}

Placement on(std::optional<DeviceName> device, std::optional<bool> requires_grad,
             bool distinct = true) {
  return {std::move(device), requires_grad, distinct};
}

/// Where x is, unless another place is asked for.
Placement beside(const Tensor& x, Placement where) {
  if (!where.device && x.node()->device != 0) where.device = DeviceName{x.device()};
  return where;
}

void init(Tensor* self, nb::handle data, std::optional<DeviceName> device,
          std::optional<DType> dtype, std::optional<bool> requires_grad) {
  const PythonSite site;
  const Tensor given = tensor_from_object(data.ptr(), dtype);
  if (device && nb::hasattr(data, "__fspath__")) leave_disk(given);
  new (self) Tensor(placed(given, on(std::move(device), requires_grad, !tensor_in(data.ptr()))));
}

// What all makers take after their own arguments.
#define WEFT_PLACE std::optional<DeviceName> device, std::optional<bool> requires_grad
#define WEFT_PLACE_ARGS "device"_a = nb::none(), "requires_grad"_a = nb::none()

void bind_filled(TensorClass& c) {
  static_method(
      c, "full",
      [](const Dims& shape, const nb::object& fill, std::optional<DType> dtype, WEFT_PLACE,
         bool buffer) {
        Dim size;
        if (to_dim(fill.ptr(), size) && !size.is_static())
          return placed(tensor_of_size(size).cast(dtype.value_or(int_or({}))).expand(shape),
                        on(device, requires_grad, false));
        const Scalar value = nb::cast<Scalar>(fill);
        return filled(shape, value, dtype.value_or(dtype_of(value)), buffer,
                      on(device, requires_grad));
      },
      "shape"_a, "fill_value"_a, "dtype"_a = nb::none(), WEFT_PLACE_ARGS, "buffer"_a = true,
      "A tensor of one value. With buffer=False it takes no memory and is no leaf of backward().");
  const auto named = [&c](const char* name, int value, const char* doc) {
    static_method(
        c, name,
        [value](const nb::args& shape, std::optional<DType> dtype, WEFT_PLACE, bool buffer) {
          return filled(dims_of_args(shape), value, float_or(dtype), buffer,
                        on(device, requires_grad));
        },
        "shape"_a, "dtype"_a = nb::none(), WEFT_PLACE_ARGS, "buffer"_a = true, doc);
  };
  named("zeros", 0, "All 0: zeros(2, 3) or zeros((2, 3)).");
  named("ones", 1, "All 1.");
  static_method(
      c, "empty",
      [](const nb::args& shape, std::optional<DType> dtype, WEFT_PLACE, bool buffer) {
        if (const auto path = device ? disk_path(device->text) : std::nullopt)
          return tensor_on_disk(*path, float_or(dtype), dims_of_args(shape));
        return filled(dims_of_args(shape), 0, float_or(dtype), buffer, on(device, requires_grad));
      },
      "shape"_a, "dtype"_a = nb::none(), WEFT_PLACE_ARGS, "buffer"_a = true,
      "Contents are unspecified (zeros today); on a device \"DISK:path\" those of the file.");
}

void bind_like(TensorClass& c) {
  const auto like = [](const Tensor& x, const Scalar& value, std::optional<DType> dtype,
                       const Placement& where, bool buffer) {
    return filled(x.dims(), value, dtype.value_or(x.dtype()), buffer, beside(x, where));
  };
  method(
      c, "full_like",
      [like](const Tensor& x, const Scalar& value, std::optional<DType> dtype, WEFT_PLACE,
             bool buffer) { return like(x, value, dtype, on(device, requires_grad), buffer); },
      "fill_value"_a, "dtype"_a = nb::none(), WEFT_PLACE_ARGS, "buffer"_a = true,
      "This one's shape and dtype, filled.");
  const auto named = [&c, like](const char* name, int value) {
    method(
        c, name,
        [like, value](const Tensor& x, std::optional<DType> dtype, WEFT_PLACE, bool buffer) {
          return like(x, value, dtype, on(device, requires_grad), buffer);
        },
        "dtype"_a = nb::none(), WEFT_PLACE_ARGS, "buffer"_a = true,
        "This one's shape and dtype, filled.");
  };
  named("zeros_like", 0);
  named("ones_like", 1);
  named("empty_like", 0);
}

/// arange(n) and arange(start, stop, step) of which some are bound Variables.
Tensor symbolic_range(const Dim& start, const Dim& stop, const Dim& step, DType dtype) {
  const Tensor places = Tensor::arange((stop - start + step - 1) / step, dtype, CallSite());
  return places * tensor_of_size(step).cast(dtype) + tensor_of_size(start).cast(dtype);
}

/// The numbers from `from` up to `to` are numbers of `out`.
void require_fit(const Scalar& from, const Scalar& to, const Tensor& t, DType out) {
  if (is_float(t.dtype()) || !is_int(out) || t.numel() == 0) return;
  const double a = from.as(DType::F64).as_double(), b = to.as(DType::F64).as_double();
  const double digits = bits(out) - (is_unsigned(out) ? 0 : 1);
  const double low = is_unsigned(out) ? 0 : -std::exp2(digits), high = std::exp2(digits);
  if (std::min(a, b + 1) < low || std::max(a + 1, b) > high)
    fail("arange.dtype", "from {} to {} does not fit {}: choose a wider dtype", a, b,
         row(out).numpy_name);
}

Tensor range(const nb::object& start, const nb::object& stop, const nb::object& step,
             std::optional<DType> dtype) {
  Dim first = 0, last, by = 1;
  const bool sizes = to_dim(start.ptr(), stop.is_none() ? last : first) &&
                     (stop.is_none() || to_dim(stop.ptr(), last)) && to_dim(step.ptr(), by);
  if (sizes && !Dims({first, last, by}).is_static())
    return symbolic_range(first, last, by, int_or(dtype));
  const Scalar from = stop.is_none() ? Scalar(0) : nb::cast<Scalar>(start);
  const Scalar to = nb::cast<Scalar>(stop.is_none() ? start : stop);
  const Tensor t = Tensor::arange(from, to, nb::cast<Scalar>(step), CallSite());
  const DType usual = bits(t.dtype()) == 64 ? t.dtype() : int_or({});
  const DType out = dtype.value_or(is_float(t.dtype()) ? float_or({}) : usual);
  require_fit(from, to, t, out);
  return t.cast(out);
}

void bind_sequences(TensorClass& c) {
  static_method(
      c, "arange",
      [](const nb::object& start, const nb::object& stop, const nb::object& step,
         std::optional<DType> dtype, WEFT_PLACE) {
        return placed(range(start, stop, step, dtype), on(device, requires_grad, false));
      },
      "start"_a, "stop"_a = nb::none(), "step"_a = 1, "dtype"_a = nb::none(), WEFT_PLACE_ARGS,
      "start, start + step, ... before stop; arange(3) is [0, 1, 2]. Takes no memory.");
  static_method(
      c, "linspace",
      [](double start, double stop, int64_t steps, std::optional<DType> dtype, WEFT_PLACE) {
        return placed(Tensor::linspace(start, stop, steps, float_or(dtype), CallSite()),
                      on(device, requires_grad, false));
      },
      "start"_a, "stop"_a, "steps"_a, "dtype"_a = nb::none(), WEFT_PLACE_ARGS,
      "steps numbers evenly spaced from start to stop, both included.");
  static_method(
      c, "eye",
      [](const Dim& n, std::optional<Dim> m, std::optional<DType> dtype, WEFT_PLACE) {
        return placed(Tensor::eye(n, m.value_or(n), float_or(dtype), CallSite()),
                      on(device, requires_grad, false));
      },
      "n"_a, "m"_a = nb::none(), "dtype"_a = nb::none(), WEFT_PLACE_ARGS,
      "(n, m): 1 where row and column are equal, else 0. Takes no memory.");
}

// ---- random numbers

Tensor normal_numbers(const Dims& shape, DType dtype) {
  const DType run = is_float(dtype) ? dtype : DType::F32;
  return Tensor::randn(shape, run, CallSite()).cast(dtype, CallSite());
}

void bind_shaped(TensorClass& c) {
  const auto shaped = [&c](const char* name, auto make, const char* doc) {
    static_method(
        c, name,
        [make](const nb::args& shape, std::optional<DType> dtype, WEFT_PLACE) {
          return placed(make(dims_of_args(shape), float_or(dtype)), on(device, requires_grad));
        },
        "shape"_a, "dtype"_a = nb::none(), WEFT_PLACE_ARGS, doc);
  };
  shaped(
      "rand", [](const Dims& s, DType d) { return Tensor::rand(s, d, CallSite()); },
      "Uniform in [0, 1).");
  shaped("randn", normal_numbers,
         "Normal, mean 0 and variance 1 (Box and Muller 1958); of integers: rounded towards 0.");
  shaped(
      "glorot_uniform",
      [](const Dims& s, DType d) { return Tensor::glorot_uniform(s, CallSite()).cast(d); },
      "Uniform for symmetric activations (Glorot and Bengio 2010).");
  shaped(
      "scaled_uniform",
      [](const Dims& s, DType d) { return scaled_uniform(s, CallSite()).cast(d); },
      "Uniform in [-1, 1) / sqrt(number of elements).");
}

void bind_distributions(TensorClass& c) {
  static_method(
      c, "randint",
      [](const nb::args& shape, int64_t low, int64_t high, std::optional<DType> dtype, WEFT_PLACE) {
        return placed(Tensor::randint(low, high, dims_of_args(shape), int_or(dtype), CallSite()),
                      on(device, requires_grad));
      },
      "shape"_a, "low"_a = 0, "high"_a = 10, "dtype"_a = nb::none(), WEFT_PLACE_ARGS,
      "Integers in [low, high).");
  static_method(
      c, "uniform",
      [](const nb::args& shape, double low, double high, std::optional<DType> dtype, WEFT_PLACE) {
        const DType out = float_or(dtype);  // of integers: rounded towards 0
        const Tensor t = Tensor::uniform(dims_of_args(shape), low, high,
                                         is_float(out) ? out : DType::F32, CallSite());
        return placed(t.cast(out), on(device, requires_grad));
      },
      "shape"_a, "low"_a = 0.0, "high"_a = 1.0, "dtype"_a = nb::none(), WEFT_PLACE_ARGS,
      "Uniform in [low, high).");
  static_method(
      c, "normal",
      [](const nb::args& shape, double mean, double std, std::optional<DType> dtype, WEFT_PLACE) {
        return placed(Tensor::normal(dims_of_args(shape), mean, std, float_or(dtype), CallSite()),
                      on(device, requires_grad));
      },
      "shape"_a, "mean"_a = 0.0, "std"_a = 1.0, "dtype"_a = nb::none(), WEFT_PLACE_ARGS,
      "Normal with this mean and standard deviation.");
  static_method(
      c, "randperm",
      [](int64_t n, std::optional<DType> dtype, WEFT_PLACE) {
        return placed(Tensor::randperm(n, int_or(dtype), CallSite()), on(device, requires_grad));
      },
      "n"_a, "dtype"_a = nb::none(), WEFT_PLACE_ARGS, "0 to n - 1 in random order.");
}

/// Of distributions.h: what tinygrad has.
void bind_samples(TensorClass& c) {
  method(
      c, "multinomial",
      [](const Tensor& weights, int64_t samples, bool replacement) {
        const bool counts = !is_float(weights.dtype());
        return multinomial(counts ? weights.cast(DType::F32) : weights, samples, replacement,
                           CallSite());
      },
      "num_samples"_a = 1, "replacement"_a = false,
      "int32 class numbers drawn by these weights, (classes) or (rows, classes).");
  method(
      c, "bernoulli", [](const Tensor& p) { return bernoulli(p, CallSite()); },
      "1 with probability this, else 0.");
  static_method(
      c, "random_bits",
      [](const nb::args& shape) { return random_bits(dims_of_args(shape), CallSite()); }, "shape"_a,
      "uint32: 32 random bits for each element.");
  static_method(
      c, "threefry2x32",
      [](const Tensor& key0, const Tensor& key1, const Tensor& counter0, const Tensor& counter1) {
        return Tensor::threefry2x32(key0, key1, counter0, counter1, CallSite());
      },
      "key0"_a, "key1"_a, "counter0"_a, "counter1"_a,
      "The two words of threefry2x32-20 (Salmon et al. 2011) for uint32 tensors, which broadcast.");
}

/// Of distributions.h, with two parameters.
using OfTwo = Tensor (*)(const Dims&, double, double, DType, CallSite);
struct Distribution {
  const char *name, *first, *second;
  double usual;  // the first parameter
  OfTwo draw;
  const char* doc;
};
constexpr Distribution kDistributions[] = {
    {"gumbel", "location", "scale", 0, gumbel, "The largest of many exponentials, mean 0.577."},
    {"log_normal", "mean", "std", 0, log_normal, "e^normal(mean, std)."},
    {"laplace", "location", "scale", 0, laplace, "Two exponentials back to back."},
    {"cauchy", "location", "scale", 0, cauchy, "The tangent of a random angle."},
};

void bind_more_distributions(TensorClass& c) {
  for (const Distribution& d : kDistributions)
    static_method(
        c, d.name,
        [draw = d.draw](const nb::args& shape, double first, double second,
                        std::optional<DType> dtype, WEFT_PLACE) {
          return placed(draw(dims_of_args(shape), first, second, float_or(dtype), CallSite()),
                        on(device, requires_grad));
        },
        "shape"_a, nb::arg(d.first) = d.usual, nb::arg(d.second) = 1.0, "dtype"_a = nb::none(),
        WEFT_PLACE_ARGS, d.doc);
  static_method(
      c, "exponential",
      [](const nb::args& shape, double rate, std::optional<DType> dtype, WEFT_PLACE) {
        return placed(exponential(dims_of_args(shape), rate, float_or(dtype), CallSite()),
                      on(device, requires_grad));
      },
      "shape"_a, "rate"_a = 1.0, "dtype"_a = nb::none(), WEFT_PLACE_ARGS, "-log(1 - u) / rate.");
  method(c, "gamma", plain(gamma), "rate"_a = 1.0,
         "Gamma distributed with this as alpha (Marsaglia and Tsang 2000), divided by rate.");
  method(c, "beta", plain(beta), "b"_a, "Beta distributed with this and b.");
  method(c, "dirichlet", plain(dirichlet), "Dirichlet distributed along the last axis.");
  method(c, "student_t", plain(student_t), "Student's t with this as degrees of freedom.");
  method(c, "gumbel_softmax", plain(gumbel_softmax), "tau"_a = 1.0, "hard"_a = false, "dim"_a = -1,
         "Samples of softmax(this) along dim, soft at this temperature (Jang et al. 2017).");
}

void bind_kaiming(TensorClass& c) {
  using Make = Tensor (*)(const Dims&, double, CallSite);
  const auto kaiming = [&c](const char* name, Make make) {
    static_method(
        c, name,
        [make](const nb::args& shape, double a, std::optional<DType> dtype, WEFT_PLACE) {
          return placed(make(dims_of_args(shape), a, CallSite()).cast(float_or(dtype)),
                        on(device, requires_grad));
        },
        "shape"_a, "a"_a = 0.01, "dtype"_a = nb::none(), WEFT_PLACE_ARGS,
        "For layers with leaky_relu of slope a (He et al. 2015).");
  };
  kaiming("kaiming_uniform", &Tensor::kaiming_uniform);
  kaiming("kaiming_normal", &Tensor::kaiming_normal);
}

}  // namespace

void bind_creation(TensorClass& c) {
  c.def("__init__", init, "data"_a = nb::none(), "device"_a = nb::none(), "dtype"_a = nb::none(),
        "requires_grad"_a = nb::none());
  bind_filled(c);
  bind_like(c);
  bind_sequences(c);
}

void bind_random(TensorClass& c) {
  static_method(
      c, "manual_seed", [](uint64_t seed) { Tensor::manual_seed(seed); }, "seed"_a = 0,
      "Starts the sequence of random numbers anew.");
  bind_shaped(c);
  bind_distributions(c);
  bind_kaiming(c);
  bind_samples(c);
  bind_more_distributions(c);
  const auto like = [&c](const char* name, auto make) {
    method(
        c, name,
        [make](const Tensor& x, std::optional<DType> dtype, WEFT_PLACE) {
          return placed(make(x.dims(), dtype.value_or(x.dtype())),
                        beside(x, on(device, requires_grad)));
        },
        "dtype"_a = nb::none(), WEFT_PLACE_ARGS, "Random numbers of this one's shape and dtype.");
  };
  method(
      c, "randint_like",
      [](const Tensor& x, int64_t low, int64_t high) {
        return randint_like(x, low, high, CallSite());
      },
      "low"_a, "high"_a, "Integers in [low, high), of this one's shape and dtype.");
  like("rand_like", [](const Dims& s, DType d) { return Tensor::rand(s, d, CallSite()); });
  like("randn_like", [](const Dims& s, DType d) { return Tensor::randn(s, d, CallSite()); });
  method(c, "dropout", plain(&Tensor::dropout), "p"_a = 0.5,
         "While training (Tensor.train()): 0 with probability p, else this / (1 - p). Otherwise "
         "this.");
}

#undef WEFT_PLACE
#undef WEFT_PLACE_ARGS

}  // namespace weft::python
