// Values: from the host into tensors, out of them again, and what runs in between.
#include <algorithm>
#include <cstring>
#include <string>

#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/run/realize.h"
#include "weft/tensor/access.h"
#include "weft/tensor/host_constants.h"
#include "weft/tensor/random.h"

namespace weft {

// ---- in

namespace {

Tensor filled_tensor(std::span<const std::byte> data, DType dtype, const Dims& shape, CallSite at) {
  const OpScope scope(Context::current(), at);
  if (!is_data(dtype)) fail_type("from", "{} is not a dtype of elements", name(dtype));
  // Of what is larger the number of bytes would wrap, perhaps to what there is.
  constexpr int64_t kMostElements = int64_t{1} << 56;
  const int64_t count = shape.product().value();
  if (count > kMostElements)
    fail("from", "shape {} has more than {} elements, which no machine holds: use smaller sizes",
         shape.text(), kMostElements);
  const int64_t bytes = bytes_for(dtype, count);
  if (bytes != static_cast<int64_t>(data.size()))
    fail("from", "{} bytes of data for shape {} of {}, which takes {}", data.size(), shape.text(),
         name(dtype), bytes);
  const auto fill = [&] { return buffer_from_bytes(scope.context, data, dtype, nodes_of(shape)); };
  auto* constants = HostConstantsScope::innermost();
  return scope.result(constants ? constants->filled(data, dtype, shape, fill) : fill());
}

}  // namespace

void check_row_length(size_t row, size_t length, size_t first, CallSite at) {
  if (length == first) return;
  const OpScope scope(Context::current(), at);
  fail("from", "row {} has {} elements, row 0 has {}: rows of a tensor have one length", row,
       length, first);
}

Tensor Tensor::from_bytes(std::span<const std::byte> data, DType dtype, const Dims& shape,
                          CallSite at) {
  Tensor x;
  Context::current().get<BufferTable>().with_swept_memory(
      [&] { x = filled_tensor(data, dtype, shape, at); });
  return x;
}

void Tensor::copy_from(std::span<const std::byte> data, CallSite at) {
  const CallSiteScope site(at);
  const ContextScope scope(context());
  assign(from_bytes(data, dtype(), dims()));
}

Tensor Tensor::to(std::string_view device, CallSite at) const {
  const OpScope scope(*this, at);
  const DeviceId id = scope.context.get<DeviceTable>().open(device).id();
  NodeRef n = node();
  if (n->device == id) return *this;
  return scope.result(scope.g.make(Op::Copy, n->dtype, {n}, {id}));
}

std::string Tensor::device() const {
  const DeviceId id = node()->device;
  auto& table = context().get<DeviceTable>();
  return id == 0 ? table.default_device().name() : table.open(id).name();
}

// ---- running

namespace {

void realize_all(std::span<const Tensor> tensors, CallSite at) {
  if (tensors.empty()) return;
  const CallSiteScope site(at);
  Context& context = tensors[0].context();
  std::vector<std::shared_ptr<Storage>> storages;
  storages.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    t.context();  // complains about a Tensor that holds nothing
    // Looking at a detached alias does not cut off what it is an alias of.
    if (TensorAccess::is_detached(t) && !t.cell()->realized()) remember_history(t);
    storages.push_back(TensorAccess::shared(t));
  }
  compute_leaves_with(context, storages);
  // The random counter moved with what was drawn; left behind, it would be another constant in
  // every later kernel.
  Generator::settle(context, storages);
  CutOff cut(context, tensors);
  realize(context, storages);
  cut.done();
}

}  // namespace

void realize(const std::vector<Tensor>& tensors, CallSite at) { realize_all(tensors, at); }

void own_elements(Tensor& x) {
  x.context();  // complains about a Tensor that holds nothing
  const TensorCell& cell = *x.cell();
  const bool others = TensorAccess::shared(x).use_count() > 1 || cell.requires_grad ||
                      cell.offered.value_or(false) || cell.leaf != 0 || cell.former || cell.history;
  if (!x.is_view() || others || cell.lost() || cell.realized() || TensorAccess::is_detached(x))
    return;
  const Tensor whole = TensorAccess::whole(TensorAccess::shared(x));
  if (!x.dims().is_static() || !whole.dims().is_static() || x.numel() > whole.numel()) return;
  const OpScope scope(x, CallSite::here());
  x = scope.result(x.node());
}

Tensor& Tensor::realize(CallSite at) {
  own_elements(*this);
  realize_all({this, 1}, at);
  return *this;
}
const Tensor& Tensor::realize(CallSite at) const {
  realize_all({this, 1}, at);
  return *this;
}

Tensor Tensor::contiguous(CallSite at) const {
  const OpScope scope(*this, at);
  const Tensor whole = TensorAccess::attached(*this);
  NodeRef n = node();
  const Op made_by = whole.node()->op;
  const bool has_buffer = made_by == Op::Contiguous || made_by == Op::Buffer;
  if (has_buffer && !whole.is_view()) return *this;
  return scope.result(scope.g.make(Op::Contiguous, n->dtype, {n}));
}

// ---- out

namespace {

/// A tensor whose storage is just its elements, in order.
Tensor dense(const Tensor& x) {
  const Tensor whole = TensorAccess::attached(x);
  if (!whole.is_view()) return whole;
  const OpScope scope(x, CallSite::here());
  return scope.result(x.node());
}

}  // namespace

void Tensor::copy_to(std::span<std::byte> data, CallSite at) const {
  const CallSiteScope site(at);
  const int64_t bytes = bytes_for(dtype(), numel());
  if (bytes != static_cast<int64_t>(data.size()))
    fail("copy_to", "room for {} bytes, but shape {} of {} takes {}", data.size(), dims().text(),
         name(dtype()), bytes);
  const Tensor x = dense(*this);
  if (!x.cell()->realized()) remember_history(x);
  x.realize();
  copy_to_host(*x.cell(), data);
}

template <class T>
std::vector<T> Tensor::to_vector(CallSite at) const {
  const CallSiteScope site(at);
  const auto count = static_cast<size_t>(numel());
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(dtype(), numel())));
  copy_to(bytes);
  std::vector<T> out(count);
  if constexpr (!std::is_same_v<T, bool>) {
    if (dtype_of<T>() == dtype()) {
      if (count) std::memcpy(out.data(), bytes.data(), bytes.size());
      return out;
    }
  }
  const size_t step = count ? bytes.size() / count : 0;
  for (size_t i = 0; i < count; ++i) {
    const Value v = Value::load(dtype(), bytes.data() + i * step).cast(dtype_of<T>());
    if constexpr (std::is_floating_point_v<T>) {
      out[i] = static_cast<T>(v.as_double());
    } else {
      out[i] = static_cast<T>(v.as_int());
    }
  }
  return out;
}

template <class T>
T Tensor::item(CallSite at) const {
  const CallSiteScope site(at);
  if (numel() != 1)
    fail("item", "shape {} has {} elements: item() takes the one of a tensor that has one",
         dims().text(), numel());
  return to_vector<T>()[0];
}

#define WEFT_ELEMENT(T)                                         \
  template std::vector<T> Tensor::to_vector<T>(CallSite) const; \
  template T Tensor::item<T>(CallSite) const;
WEFT_ELEMENT(bool)
WEFT_ELEMENT(int8_t)
WEFT_ELEMENT(int16_t)
WEFT_ELEMENT(int32_t)
WEFT_ELEMENT(int64_t)
WEFT_ELEMENT(uint8_t)
WEFT_ELEMENT(uint16_t)
WEFT_ELEMENT(uint32_t)
WEFT_ELEMENT(uint64_t)
WEFT_ELEMENT(float)
WEFT_ELEMENT(double)
#undef WEFT_ELEMENT

// ---- as text

namespace {

constexpr int64_t kShownAtEachEnd = 3;
constexpr int64_t kMostShown = 200;

/// Writes nested brackets; axes longer than twice the ends are abbreviated where `brief`.
class TextWriter {
 public:
  TextWriter(DType dtype, std::span<const std::byte> bytes, const std::vector<int64_t>& shape,
             bool brief)
      : dtype_(dtype), bytes_(bytes), shape_(shape), brief_(brief) {}

  std::string text(size_t axis = 0, int64_t at = 0) const {  // as deep as there are axes
    if (axis == shape_.size()) {
      const auto size = static_cast<int64_t>(bits(dtype_) / 8);
      const std::string number = Value::load(dtype_, bytes_.data() + at * size).text();
      return number.starts_with("nan") ? "nan" : number;  // machines differ in its bits
    }
    std::string out = "[";
    const int64_t n = shape_[axis];
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) out += ", ";
      if (brief_ && n > 2 * kShownAtEachEnd && i == kShownAtEachEnd) {
        out += "..., ";
        i = n - kShownAtEachEnd;
      }
      out += text(axis + 1, at * n + i);
    }
    return out + "]";
  }

 private:
  DType dtype_;
  std::span<const std::byte> bytes_;
  const std::vector<int64_t>& shape_;
  bool brief_;
};

}  // namespace

std::string Tensor::text(CallSite at) const {
  const CallSiteScope site(at);
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(dtype(), numel())));
  copy_to(bytes);
  const std::vector<int64_t> sizes = shape();
  const TextWriter writer(dtype(), bytes, sizes, numel() > kMostShown);
  return fmt::format("{} {} {}", name(dtype()), dims().text(), writer.text());
}

}  // namespace weft
