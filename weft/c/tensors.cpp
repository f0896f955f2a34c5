// Tensors of weft.h: their making, what they are, their values and gradients.
#include "weft/base/checked.h"
#include "weft/c/boundary.h"
#include "weft/c/handles.h"
#include "weft/io/host_array.h"
#include "weft/io/host_memory.h"

namespace weft::c {

namespace {

/// The body of a function about one tensor, in its context.
template <class Body>
weft_status with_tensor(weft_tensor handle, const Body& body) noexcept {
  return guarded([&] {
    const auto object = object_of(handle);
    const ContextScope scope(object->owner->context);
    body(*object);
  });
}

/// A tensor of the same context, or an empty one for NULL.
Tensor companion(const TensorObject& of, weft_tensor handle) {
  if (!handle) return {};
  auto owner = of.owner;
  return tensors_of(&handle, 1, owner)[0];
}

uint64_t bytes_of(const Tensor& x) {
  return static_cast<uint64_t>(bytes_for(x.dtype(), x.numel(CallSite())));
}

void require_bytes(const Tensor& x, const void* data, uint64_t bytes) {
  if (bytes != bytes_of(x))
    fail("copy", "{} bytes given: {} of shape {} take {}", bytes, name(x.dtype()), x.dims().text(),
         bytes_of(x));
  require_pointer("data", data, bytes > 0 ? 1 : 0);
}

struct Described {
  DType dtype;
  std::vector<int64_t> shape;
};

Described checked_array(const weft_array& a) {
  constexpr uint32_t kMostAxes = 64;
  const auto dtype =
      a.dtype >= 0 && a.dtype < 256 ? dtype_from_id(static_cast<uint8_t>(a.dtype)) : std::nullopt;
  if (!dtype || !is_data(*dtype)) fail_type("create", "no dtype has the number {}", a.dtype);
  if (a.rank > kMostAxes) fail("create", "{} axes: a tensor has at most {}", a.rank, kMostAxes);
  if (a.flags & ~uint32_t{WEFT_BORROW}) refuse("create", "there is no flag {}", a.flags);
  if (a.deleter && !(a.flags & WEFT_BORROW))
    refuse("create", "a deleter is for memory that is borrowed: set WEFT_BORROW");
  require_pointer("shape", a.shape, a.rank);
  std::vector<int64_t> shape(a.shape, a.shape + a.rank);
  const auto bytes = checked_bytes(*dtype, shape);
  if (!bytes || static_cast<uint64_t>(*bytes) != a.bytes)
    fail("create", "{} bytes for {} of shape {}, which take {}", a.bytes, name(*dtype),
         shape_text(shape), bytes ? std::to_string(*bytes) : "more than there can be");
  require_pointer("data", a.data, a.bytes > 0 ? 1 : 0);
  return {*dtype, std::move(shape)};
}

/// Calls the deleter with its last reader, once it is armed.
struct Lent {
  void (*deleter)(void*) = nullptr;
  void* context = nullptr;
  ~Lent() {
    if (deleter) deleter(context);
  }
};

weft_tensor create(const std::shared_ptr<ContextObject>& owner, const weft_array& a) {
  const Described d = checked_array(a);
  const std::span bytes(static_cast<const std::byte*>(a.data), static_cast<size_t>(a.bytes));
  if (!(a.flags & WEFT_BORROW))
    return tensor_handle(owner, Tensor::from_bytes(bytes, d.dtype, Dims(d.shape), CallSite()));
  const auto lent = std::make_shared<Lent>();
  const weft_tensor made = tensor_handle(owner, borrowed_tensor(a.data, d.dtype, d.shape, lent));
  lent->deleter = a.deleter;  // from here on nothing fails
  lent->context = a.deleter_context;
  return made;
}

weft_value item_of(const Tensor& x) {
  if (x.numel(CallSite()) != 1)
    fail("item", "shape {} has {} elements: an item is of one", x.dims().text(), x.numel());
  if (is_bool(x.dtype())) return weft_bool(x.item<bool>(CallSite()));
  if (is_float(x.dtype())) return weft_float(x.item<double>(CallSite()));
  if (x.dtype() != DType::U64) return weft_int(x.item<int64_t>(CallSite()));
  const auto n = x.item<uint64_t>(CallSite());
  return n > INT64_MAX ? weft_float(static_cast<double>(n)) : weft_int(static_cast<int64_t>(n));
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= std::max<int64_t>(1, shape[i])) strides[i] = step;
  return strides;
}

}  // namespace

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

weft_status weft_tensor_create(weft_context context, const weft_array* from, weft_tensor* out) {
  return guarded([&] {
    const auto owner = object_of(context);
    const weft_array a = read_struct("weft_array", from, offsetof(weft_array, deleter));
    require_pointer("out", out);
    const ContextScope scope(owner->context);
    *out = create(owner, a);
  });
}

weft_status weft_tensor_share(weft_tensor x, weft_tensor* out) {
  return with_tensor(x, [&](const TensorObject& t) {
    require_pointer("out", out);
    *out = tensor_handle(t.owner, t.tensor);
  });
}

void weft_tensor_release(weft_tensor x) { release_handle(x); }

weft_status weft_tensor_dtype(weft_tensor x, weft_dtype* out) {
  return with_tensor(x, [&](const TensorObject& t) {
    require_pointer("out", out);
    *out = static_cast<weft_dtype>(t.tensor.dtype());
  });
}

weft_status weft_tensor_rank(weft_tensor x, size_t* out) {
  return with_tensor(x, [&](const TensorObject& t) {
    require_pointer("out", out);
    *out = t.tensor.ndim();
  });
}

weft_status weft_tensor_shape(weft_tensor x, int64_t* sizes, size_t capacity, size_t* rank) {
  return with_tensor(x, [&](const TensorObject& t) {
    write_list("sizes", t.tensor.shape(CallSite()), sizes, capacity, rank);
  });
}

weft_status weft_tensor_strides(weft_tensor x, int64_t* strides, size_t capacity, size_t* rank) {
  return with_tensor(x, [&](const TensorObject& t) {
    write_list("strides", row_major_strides(t.tensor.shape(CallSite())), strides, capacity, rank);
  });
}

weft_status weft_tensor_device(weft_tensor x, char* text, size_t capacity, size_t* length) {
  return with_tensor(
      x, [&](const TensorObject& t) { write_text(t.tensor.device(), text, capacity, length); });
}

weft_status weft_tensor_text(weft_tensor x, char* text, size_t capacity, size_t* length) {
  return with_tensor(x, [&](const TensorObject& t) {
    write_text(t.tensor.text(CallSite()), text, capacity, length);
  });
}

// ---- values

weft_status weft_realize(const weft_tensor* tensors, size_t count) {
  return guarded([&] {
    std::shared_ptr<ContextObject> owner;
    const std::vector<Tensor> all = tensors_of(tensors, count, owner);
    if (all.empty()) return;
    const ContextScope scope(owner->context);
    realize(all, CallSite());
  });
}

weft_status weft_tensor_copy_out(weft_tensor x, void* to, uint64_t bytes) {
  return with_tensor(x, [&](const TensorObject& t) {
    require_bytes(t.tensor, to, bytes);
    if (bytes > 0)
      t.tensor.copy_to({static_cast<std::byte*>(to), static_cast<size_t>(bytes)}, CallSite());
  });
}

weft_status weft_tensor_copy_in(weft_tensor x, const void* from, uint64_t bytes) {
  return with_tensor(x, [&](TensorObject& t) {
    require_bytes(t.tensor, from, bytes);
    if (bytes > 0)
      t.tensor.copy_from({static_cast<const std::byte*>(from), static_cast<size_t>(bytes)},
                         CallSite());
  });
}

weft_status weft_tensor_item(weft_tensor x, weft_value* out) {
  return with_tensor(x, [&](const TensorObject& t) {
    require_pointer("out", out);
    *out = item_of(t.tensor);
  });
}

weft_status weft_tensor_assign(weft_tensor x, weft_tensor value) {
  return with_tensor(x, [&](TensorObject& t) {
    require_pointer("value", value);
    t.tensor.assign(Operand(companion(t, value), CallSite()), CallSite());
  });
}

// ---- gradients

weft_status weft_tensor_set_requires_grad(weft_tensor x, bool on) {
  return with_tensor(x, [&](TensorObject& t) { t.tensor.requires_grad_(on, CallSite()); });
}

weft_status weft_tensor_requires_grad(weft_tensor x, bool* out) {
  return with_tensor(x, [&](const TensorObject& t) {
    require_pointer("out", out);
    *out = t.tensor.requires_grad();
  });
}

weft_status weft_tensor_grad(weft_tensor x, weft_tensor* out) {
  return with_tensor(x, [&](const TensorObject& t) {
    require_pointer("out", out);
    Tensor g = t.tensor.grad();
    *out = g.defined() ? tensor_handle(t.owner, std::move(g)) : nullptr;
  });
}

weft_status weft_tensor_zero_grad(weft_tensor x) {
  return with_tensor(x, [&](TensorObject& t) { t.tensor.zero_grad(); });
}

weft_status weft_backward(weft_tensor loss, weft_tensor gradient) {
  return with_tensor(loss, [&](const TensorObject& t) {
    if (!gradient) return t.tensor.backward(CallSite());
    t.tensor.backward(companion(t, gradient), CallSite());
  });
}

weft_status weft_gradient(weft_tensor y, weft_tensor upstream, const weft_tensor* targets,
                          size_t count, weft_tensor* outs) {
  return with_tensor(y, [&](const TensorObject& t) {
    auto owner = t.owner;
    const std::vector<Tensor> of = tensors_of(targets, count, owner);
    require_pointer("outs", outs, count);
    const Tensor above = companion(t, upstream);
    tensor_handles(
        owner,
        upstream ? t.tensor.gradient(of, above, CallSite()) : t.tensor.gradient(of, CallSite()),
        outs);
  });
}

}  // extern "C"
