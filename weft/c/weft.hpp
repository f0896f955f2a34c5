// weft.hpp: the C interface in C++17: handles that release themselves, errors that are thrown,
// operators. It needs weft.h and libweft.so and nothing else of weft's. (Programs in C++20 may use
// weft/weft.h, the interface that weft itself is written in, instead.)
//
//   namespace wt = weft::c;
//   wt::Context context;
//   wt::Tensor x = context.of<float>({1, 2, 3, 4}, {2, 2});
//   std::puts(wt::apply("softmax", x, wt::named("axis", 0)).text().c_str());
#pragma once

#include <cstddef>
#include <exception>
#include <functional>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/c/weft.h"

namespace weft::c {

/// What a function of weft.h had to say.
class Error : public std::runtime_error {
 public:
  Error(weft_status status, const std::string& code, const std::string& text)
      : std::runtime_error(text), status_(status), code_(code) {}
  weft_status status() const { return status_; }
  const std::string& code() const { return code_; }  ///< stable: "safetensors.header"

 private:
  weft_status status_;
  std::string code_;
};

inline void check(weft_status status) {
  if (status == WEFT_OK) return;
  weft_error e = WEFT_STRUCT(weft_error);
  weft_last_error(&e);
  throw Error(status, e.code, e.text);
}

class Context;

namespace detail {

/// The text that a function writes where it is told how much there is.
template <class Write>
std::string text_of(const Write& write) {
  size_t length = 0;
  check(write(nullptr, 0, &length));
  std::string text(length + 1, '\0');
  check(write(text.data(), text.size(), &length));
  text.resize(length);
  return text;
}

template <class T>
constexpr weft_dtype dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "elements are C++ numbers");
  if (std::is_same_v<T, bool>) return WEFT_BOOL;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? WEFT_F32 : WEFT_F64;
  constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return (std::is_signed_v<T> ? WEFT_I8 : WEFT_U8) + log2;
}

}  // namespace detail

/// A handle of a tensor. Copies are handles of the same tensor: what is written to one, the others
/// see.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(weft_tensor owned) : handle_(owned) {}
  Tensor(const Tensor& other) {
    if (other.handle_ != nullptr) check(weft_tensor_share(other.handle_, &handle_));
  }
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Tensor() { weft_tensor_release(handle_); }

  weft_tensor get() const { return handle_; }
  weft_tensor release() { return std::exchange(handle_, nullptr); }
  explicit operator bool() const { return handle_ != nullptr; }

  weft_dtype dtype() const {
    weft_dtype d = 0;
    check(weft_tensor_dtype(handle_, &d));
    return d;
  }
  std::vector<int64_t> shape() const {
    size_t rank = 0;
    check(weft_tensor_rank(handle_, &rank));
    std::vector<int64_t> sizes(rank);
    check(weft_tensor_shape(handle_, sizes.data(), rank, &rank));
    return sizes;
  }
  int64_t numel() const {
    int64_t count = 1;
    for (int64_t n : shape()) count *= n;
    return count;
  }
  std::string text() const {
    return detail::text_of([&](char* t, size_t capacity, size_t* length) {
      return weft_tensor_text(handle_, t, capacity, length);
    });
  }
  std::string device() const {
    return detail::text_of([&](char* t, size_t capacity, size_t* length) {
      return weft_tensor_device(handle_, t, capacity, length);
    });
  }

  Tensor& realize() {
    check(weft_realize(&handle_, 1));
    return *this;
  }
  /// All elements, row-major; T is the tensor's element type.
  template <class T>
  std::vector<T> to_vector() const {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements: take uint8_t");
    const weft_dtype d = dtype();
    if (d != detail::dtype_of<T>() && !(d == WEFT_BOOL && std::is_same_v<T, uint8_t>))
      throw Error(WEFT_ERROR_TYPE, "to_vector", "[to_vector] cast the tensor to this type first");
    std::vector<T> all(static_cast<size_t>(numel()));
    check(weft_tensor_copy_out(handle_, all.data(), all.size() * sizeof(T)));
    return all;
  }
  /// The one element.
  template <class T = double>
  T item() const {
    weft_value v = {};
    check(weft_tensor_item(handle_, &v));
    if (v.kind == WEFT_FLOAT) return static_cast<T>(v.as.number);
    return v.kind == WEFT_INT ? static_cast<T>(v.as.integer) : static_cast<T>(v.as.boolean);
  }
  Tensor& assign(const Tensor& value) {
    check(weft_tensor_assign(handle_, value.handle_));
    return *this;
  }

  Tensor& requires_grad(bool on = true) {
    check(weft_tensor_set_requires_grad(handle_, on));
    return *this;
  }
  void backward() const { check(weft_backward(handle_, nullptr)); }
  void backward(const Tensor& gradient) const { check(weft_backward(handle_, gradient.get())); }
  /// An empty one before the first backward().
  Tensor grad() const {
    weft_tensor g = nullptr;
    check(weft_tensor_grad(handle_, &g));
    return Tensor(g);
  }
  void zero_grad() { check(weft_tensor_zero_grad(handle_)); }

 private:
  weft_tensor handle_ = nullptr;
};

/// An argument of apply(): a Tensor, a number, text, a dtype as text ("f32"), or a list of one of
/// them.
class Value {
 public:
  Value(const Tensor& x) : value_(weft_arg(x.get())) {}               // NOLINT: implicit by purpose
  Value(bool x) : value_(weft_bool(x)) {}                             // NOLINT
  Value(const char* x) : text_(x) { refresh(WEFT_TEXT); }             // NOLINT
  Value(std::string x) : text_(std::move(x)) { refresh(WEFT_TEXT); }  // NOLINT
  Value(std::vector<int64_t> x) : ints_(std::move(x)) { refresh(WEFT_INTS); }  // NOLINT

  Value(std::vector<double> x) : floats_(std::move(x)) { refresh(WEFT_FLOATS); }  // NOLINT
  Value(const std::vector<Tensor>& x) {                                           // NOLINT
    for (const Tensor& t : x) tensors_.push_back(t.get());
    refresh(WEFT_TENSORS);
  }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Value(T x) {  // NOLINT
    value_ = std::is_floating_point_v<T> ? weft_float(static_cast<double>(x))
                                         : weft_int(static_cast<int64_t>(x));
  }
  Value(const Value& other) { *this = other; }
  ~Value() = default;
  Value& operator=(const Value& other) {
    value_ = other.value_, name_ = other.name_, text_ = other.text_;
    ints_ = other.ints_, floats_ = other.floats_, tensors_ = other.tensors_;
    refresh(value_.kind);
    return *this;
  }

  Value& with_name(std::string name) {
    name_ = std::move(name);
    return *this;
  }
  weft_value get() const {
    weft_value v = value_;
    v.name = name_.empty() ? nullptr : name_.c_str();
    return v;
  }

 private:
  /// Points at this one's own memory.
  void refresh(weft_kind kind) {
    value_.kind = kind;
    if (kind == WEFT_TEXT) value_.as.text = text_.c_str();
    if (kind == WEFT_INTS) value_ = weft_ints(ints_.data(), ints_.size());
    if (kind == WEFT_FLOATS) value_ = weft_floats(floats_.data(), floats_.size());
    if (kind == WEFT_TENSORS) value_ = weft_args(tensors_.data(), tensors_.size());
  }

  weft_value value_ = {};
  std::string name_, text_;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
  std::vector<weft_tensor> tensors_;
};

/// For the parameter of this name: named("axis", 0).
inline Value named(std::string name, Value value) { return value.with_name(std::move(name)); }

/// All results of an operation: results(nullptr, "topk", {x, 3}). No context: that of the tensors.
inline std::vector<Tensor> results(weft_context context, const std::string& operation,
                                   const std::vector<Value>& values) {
  std::vector<weft_value> given;
  for (const Value& v : values) given.push_back(v.get());
  std::vector<weft_tensor> outs(4);
  size_t count = 0;
  const auto call = [&] {
    return weft_apply(context, operation.c_str(), given.data(), given.size(), outs.data(),
                      outs.size(), &count);
  };
  weft_status status = call();
  if (status == WEFT_ERROR_SPACE) {
    outs.resize(count);
    status = call();
  }
  check(status);
  std::vector<Tensor> all;
  for (size_t i = 0; i < count; ++i) all.emplace_back(outs[i]);
  return all;
}

namespace detail {
inline Tensor one(const std::string& operation, std::vector<Tensor> all) {
  if (all.size() != 1)
    throw Error(WEFT_ERROR_VALUE, "apply", "[apply] " + operation + " has not one result");
  return std::move(all[0]);
}
}  // namespace detail

/// The one result of an operation on tensors: apply("softmax", x, named("axis", 0)).
template <class... A>
Tensor apply(const std::string& operation, const A&... values) {
  return detail::one(operation, results(nullptr, operation, {Value(values)...}));
}

inline Tensor operator+(const Tensor& a, const Value& b) { return apply("add", a, b); }
inline Tensor operator-(const Tensor& a, const Value& b) { return apply("sub", a, b); }
inline Tensor operator*(const Tensor& a, const Value& b) { return apply("mul", a, b); }
inline Tensor operator/(const Tensor& a, const Value& b) { return apply("div", a, b); }
inline Tensor operator%(const Tensor& a, const Value& b) { return apply("mod", a, b); }
inline Tensor operator<(const Tensor& a, const Value& b) { return apply("lt", a, b); }
inline Tensor operator<=(const Tensor& a, const Value& b) { return apply("le", a, b); }
inline Tensor operator>(const Tensor& a, const Value& b) { return apply("gt", a, b); }
inline Tensor operator>=(const Tensor& a, const Value& b) { return apply("ge", a, b); }
inline Tensor operator==(const Tensor& a, const Value& b) { return apply("eq", a, b); }
inline Tensor operator!=(const Tensor& a, const Value& b) { return apply("ne", a, b); }
inline Tensor operator-(const Tensor& x) { return apply("neg", x); }
template <class T>
using IfNumber = std::enable_if_t<std::is_arithmetic_v<T>, Tensor>;
template <class T>
IfNumber<T> operator+(T a, const Tensor& b) {
  return apply("add", b, a);
}
template <class T>
IfNumber<T> operator-(T a, const Tensor& b) {
  return apply("rsub", b, a);
}
template <class T>
IfNumber<T> operator*(T a, const Tensor& b) {
  return apply("mul", b, a);
}
template <class T>
IfNumber<T> operator/(T a, const Tensor& b) {
  return apply("rdiv", b, a);
}

/// Runs what these need, together.
inline void realize(const std::vector<Tensor>& tensors) {
  std::vector<weft_tensor> handles;
  for (const Tensor& t : tensors) handles.push_back(t.get());
  check(weft_realize(handles.data(), handles.size()));
}

inline void save(const std::string& path, const std::map<std::string, Tensor>& tensors) {
  std::vector<const char*> names;
  std::vector<weft_tensor> handles;
  for (const auto& [name, x] : tensors) {
    names.push_back(name.c_str());
    handles.push_back(x.get());
  }
  check(weft_save(path.c_str(), names.data(), handles.data(), handles.size()));
}

/// A context. It lives until its last tensor is gone too.
class Context {
 public:
  /// Options from the environment, then {"WEFT_THREADS=2", ...}.
  explicit Context(const std::vector<std::string>& settings = {}) {
    std::vector<const char*> texts;
    for (const std::string& s : settings) texts.push_back(s.c_str());
    texts.push_back(nullptr);
    check(weft_context_create(texts.data(), &handle_));
  }
  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Context() { weft_context_release(handle_); }

  weft_context get() const { return handle_; }
  void set(const std::string& name, const std::string& value) {
    check(weft_context_set(handle_, name.c_str(), value.c_str()));
  }
  std::string option(const std::string& name) const {
    return detail::text_of([&](char* t, size_t capacity, size_t* length) {
      return weft_context_get(handle_, name.c_str(), t, capacity, length);
    });
  }
  void seed(uint64_t seed) { check(weft_seed(handle_, seed)); }
  /// For `weft viz FILE`, until stop_recording(); without a path to a new file of the state
  /// directory.
  void start_recording(const std::string& path = "") {
    check(weft_start_recording(handle_, path.empty() ? nullptr : path.c_str()));
  }
  void stop_recording() { check(weft_stop_recording(handle_)); }

  /// An operation that takes no tensor: context.apply("zeros", std::vector<int64_t>{2, 3}).
  template <class... A>
  Tensor apply(const std::string& operation, const A&... values) const {
    return detail::one(operation, results(handle_, operation, {Value(values)...}));
  }

  /// Copies the elements now, row-major.
  template <class T>
  Tensor of(const std::vector<T>& data, const std::vector<int64_t>& shape) const {
    weft_array a = WEFT_STRUCT(weft_array);
    a.dtype = detail::dtype_of<T>();
    a.rank = static_cast<uint32_t>(shape.size());
    a.shape = shape.data();
    a.data = data.data();
    a.bytes = data.size() * sizeof(T);
    weft_tensor made = nullptr;
    check(weft_tensor_create(handle_, &a, &made));
    return Tensor(made);
  }
  Tensor zeros(const std::vector<int64_t>& shape) const { return apply("zeros", shape); }
  Tensor ones(const std::vector<int64_t>& shape) const { return apply("ones", shape); }
  Tensor full(const std::vector<int64_t>& shape, const Value& x) const {
    return apply("full", shape, x);
  }
  Tensor arange(int64_t stop) const { return apply("arange", stop); }
  Tensor rand(const std::vector<int64_t>& shape) const { return apply("rand", shape); }
  Tensor randn(const std::vector<int64_t>& shape) const { return apply("randn", shape); }

  /// Tensors of a safetensors file, by name.
  std::map<std::string, Tensor> load(const std::string& path) const {
    std::map<std::string, Tensor> all;
    const auto found = [](void* user, const char* name, weft_tensor x) -> weft_status {
      Tensor owned(x);
      try {
        static_cast<std::map<std::string, Tensor>*>(user)->emplace(name, std::move(owned));
        return WEFT_OK;
      } catch (...) {
        return WEFT_ERROR_MEMORY;
      }
    };
    check(weft_load(handle_, path.c_str(), found, &all));
    return all;
  }

 private:
  weft_context handle_ = nullptr;
};

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

namespace detail {

/// A function as weft.h takes it, and what it threw.
struct Callback {
  Function f;
  std::exception_ptr thrown = nullptr;

  static weft_status call(void* user, const weft_tensor* arguments, size_t count, weft_tensor* outs,
                          size_t capacity, size_t* out_count) {
    auto& self = *static_cast<Callback*>(user);
    try {
      std::vector<Tensor> given(count);
      for (size_t i = 0; i < count; ++i) {
        weft_tensor shared = nullptr;
        check(weft_tensor_share(arguments[i], &shared));
        given[i] = Tensor(shared);
      }
      std::vector<Tensor> results = self.f(given);
      *out_count = results.size();
      for (size_t i = 0; i < results.size() && i < capacity; ++i) outs[i] = results[i].release();
      return WEFT_OK;
    } catch (...) {
      self.thrown = std::current_exception();
      return WEFT_ERROR_RUNTIME;
    }
  }
  void finish(weft_status status) {
    if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
    check(status);
  }
};

}  // namespace detail

/// loss(batch) and its backward() in `parts` micro-batches: weft_accumulate_gradients(). Gives the
/// mean of their losses, or their sum.
inline Tensor accumulate_gradients(std::function<Tensor(const std::vector<Tensor>&)> loss,
                                   const std::vector<Tensor>& batch, int64_t parts,
                                   bool sum = false) {
  detail::Callback callback{[&](const std::vector<Tensor>& pieces) {
    std::vector<Tensor> one;
    one.push_back(loss(pieces));
    return one;
  }};
  std::vector<weft_tensor> handles;
  for (const Tensor& t : batch) handles.push_back(t.get());
  weft_tensor out = nullptr;
  callback.finish(weft_accumulate_gradients(&detail::Callback::call, &callback, handles.data(),
                                            handles.size(), parts, sum, &out));
  return Tensor(out);
}

/// A function of tensors that is captured at its second call and replayed from then on (weft.h).
class Program {
 public:
  using Function = c::Function;
  /// f gives at most most_results tensors.
  Program(const Context& context, Function f, const char* name = "program",
          size_t most_results = 64)
      : state_(std::make_unique<detail::Callback>()), most_results_(most_results) {
    state_->f = std::move(f);
    weft_program_source source = WEFT_STRUCT(weft_program_source);
    source.name = name;
    source.function = &detail::Callback::call;
    source.user = state_.get();
    check(weft_program_create(context.get(), &source, &handle_));
  }
  Program(Program&& other) noexcept
      : state_(std::move(other.state_)),
        handle_(std::exchange(other.handle_, nullptr)),
        most_results_(other.most_results_) {}
  ~Program() { weft_program_release(handle_); }

  std::vector<Tensor> operator()(const std::vector<Tensor>& arguments) {
    std::vector<weft_tensor> handles, outs(most_results_);
    for (const Tensor& t : arguments) handles.push_back(t.get());
    size_t count = 0;
    const weft_status status = weft_program_call(handle_, handles.data(), handles.size(),
                                                 outs.data(), outs.size(), &count);
    state_->finish(status);
    std::vector<Tensor> all;
    for (size_t i = 0; i < count; ++i) all.emplace_back(outs[i]);
    return all;
  }
  /// Of what was captured; 0 before.
  size_t kernels() const {
    size_t count = 0;
    check(weft_program_kernels(handle_, &count));
    return count;
  }
  int64_t kept_bytes() const {
    int64_t bytes = 0;
    check(weft_program_kept_bytes(handle_, &bytes));
    return bytes;
  }
  int64_t planned_bytes() const {
    int64_t bytes = 0;
    check(weft_program_planned_bytes(handle_, &bytes));
    return bytes;
  }

 private:
  std::unique_ptr<detail::Callback> state_;
  weft_program handle_ = nullptr;
  size_t most_results_;
};

/// f, called once with placeholders for tensors like `inputs`, as an ONNX file: weft_export_onnx().
inline void export_onnx(const std::string& path, Function f, const std::vector<Tensor>& inputs,
                        size_t most_results = 64) {
  detail::Callback callback{std::move(f)};
  std::vector<weft_tensor> handles;
  for (const Tensor& t : inputs) handles.push_back(t.get());
  callback.finish(weft_export_onnx(path.c_str(), &detail::Callback::call, &callback, handles.data(),
                                   handles.size(), most_results));
}

/// An ONNX model as a function of named tensors (weft.h).
class Model {
 public:
  Model(const Context& context, const std::string& path) {
    check(weft_model_open(context.get(), path.c_str(), &handle_));
  }
  Model(Model&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Model() { weft_model_release(handle_); }

  std::vector<std::string> inputs() const { return names(weft_model_input, true); }
  std::vector<std::string> outputs() const { return names(weft_model_output, false); }
  std::map<std::string, Tensor> operator()(const std::map<std::string, Tensor>& given) {
    std::vector<const char*> keys;
    std::vector<weft_tensor> handles;
    for (const auto& [name, x] : given) keys.push_back(name.c_str()), handles.push_back(x.get());
    const std::vector<std::string> results = outputs();
    std::vector<weft_tensor> outs(results.size());
    check(weft_model_call(handle_, keys.data(), handles.data(), keys.size(), outs.data(),
                          outs.size(), nullptr));
    std::map<std::string, Tensor> all;
    for (size_t i = 0; i < results.size(); ++i) all.emplace(results[i], Tensor(outs[i]));
    return all;
  }
  /// Of the last call's replay; 0 where it ran node by node.
  size_t kernels() const {
    size_t count = 0;
    check(weft_model_kernels(handle_, &count));
    return count;
  }

 private:
  template <class Get>
  std::vector<std::string> names(Get get, bool are_inputs) const {
    size_t inputs = 0, outputs = 0;
    check(weft_model_counts(handle_, &inputs, &outputs));
    std::vector<std::string> all;
    for (size_t i = 0; i < (are_inputs ? inputs : outputs); ++i)
      all.push_back(detail::text_of([&](char* text, size_t capacity, size_t* length) {
        return get(handle_, i, text, capacity, length);
      }));
    return all;
  }

  weft_model handle_ = nullptr;
};

/// Curves of a training for `tensorboard --logdir FOLDER` (weft.h).
///   EventFile events("runs/1");
///   events.scalar("train/loss", loss, step);
class EventFile {
 public:
  explicit EventFile(const std::string& folder) {
    check(weft_event_file_create(folder.c_str(), &handle_));
  }
  EventFile(EventFile&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~EventFile() { weft_event_file_release(handle_); }

  weft_event_file get() const { return handle_; }
  void scalar(const std::string& tag, double value, int64_t step) {
    check(weft_event_file_scalar(handle_, tag.c_str(), value, step));
  }
  void flush() { check(weft_event_file_flush(handle_)); }
  std::string path() const {
    return detail::text_of([&](char* text, size_t capacity, size_t* length) {
      return weft_event_file_path(handle_, text, capacity, length);
    });
  }

 private:
  weft_event_file handle_ = nullptr;
};

/// Texts to ids and back (weft.h).
class Tokenizer {
 public:
  explicit Tokenizer(const std::string& path) {
    check(weft_tokenizer_open(path.c_str(), &handle_));
  }
  explicit Tokenizer(weft_tokenizer owned) : handle_(owned) {}
  weft_tokenizer get() const { return handle_; }
  Tokenizer(Tokenizer&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Tokenizer() { weft_tokenizer_release(handle_); }

  std::vector<int32_t> encode(const std::string& text, bool special_tokens = true) const {
    size_t count = 0;
    check(weft_tokenizer_encode(handle_, text.c_str(), special_tokens, nullptr, 0, &count));
    std::vector<int32_t> ids(count);
    if (count > 0)
      check(weft_tokenizer_encode(handle_, text.c_str(), special_tokens, ids.data(), ids.size(),
                                  &count));
    return ids;
  }
  std::string decode(const std::vector<int32_t>& ids) const {
    return detail::text_of([&](char* text, size_t capacity, size_t* length) {
      return weft_tokenizer_decode(handle_, ids.data(), ids.size(), text, capacity, length);
    });
  }
  /// A chat in JSON as the text that its model was trained on.
  std::string chat(const std::string& messages, const char* tools = nullptr) const {
    return detail::text_of([&](char* text, size_t capacity, size_t* length) {
      return weft_tokenizer_chat(handle_, messages.c_str(), tools, text, capacity, length);
    });
  }

 private:
  weft_tokenizer handle_ = nullptr;
};

}  // namespace weft::c
