#include "weft/io/host_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "weft/base/context.h"
#include "weft/base/file.h"
#include "weft/device/host_device.h"
#include "weft/run/active_capture.h"
#include "weft/tensor/access.h"

namespace weft {

int64_t HostView::numel() const {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  return count;
}

namespace {

bool is_aligned(const void* data, DType dtype) {
  return std::bit_cast<uintptr_t>(data) %
             std::max<size_t>(1, static_cast<size_t>(bits(dtype)) / 8) ==
         0;
}

Tensor copied(const HostView& view, const Dims& dims) {
  const auto bytes = static_cast<size_t>(bytes_for(view.dtype, view.numel()));
  return Tensor::from_bytes({static_cast<const std::byte*>(view.data), bytes}, view.dtype, dims,
                            CallSite());
}

}  // namespace

std::unique_ptr<HostView> host_view(const Tensor& x) {
  auto view = std::make_unique<HostView>();
  view->dtype = x.dtype();
  view->shape = x.shape();
  view->strides.resize(view->shape.size());
  int64_t step = 1;
  for (size_t i = view->shape.size(); i-- > 0;) {
    view->strides[i] = step;
    step *= std::max<int64_t>(1, view->shape[i]);
  }
  const Tensor attached = TensorAccess::attached(x);
  const Tensor whole = attached.is_view() ? x.contiguous() : attached;
  if (!whole.cell()->realized()) whole.realize();
  if (CaptureListener* capture = active_capture(x.context())) capture->host_read(*whole.cell());
  view->buffer = whole.cell()->buffer();
  if (view->buffer->data() == nullptr) return host_view(whole.to("CPU"));
  view->buffer->check_file();
  view->node = RootedNode(whole.cell()->value());
  view->data = view->buffer->data();
  // Of a file, which kernels read as it lies.
  return is_aligned(view->data, view->dtype) ? std::move(view) : host_view(copied(*view, x.dims()));
}

std::unique_ptr<HostView> host_copy(const Tensor& x) {
  return host_view(copied(*host_view(x), x.dims()));
}

std::shared_ptr<const void> memory_owner(const std::shared_ptr<HostView>& view) {
  return view->buffer->in_file() ? view->buffer->owner() : view;
}

namespace {

/// Null where it has none of its own.
std::shared_ptr<Buffer> buffer_of(const Tensor& x) {
  const Tensor attached = TensorAccess::attached(x);
  return attached.is_view() ? nullptr : attached.cell()->buffer();
}

}  // namespace

void fetch(const Tensor& x) {
  if (const auto buffer = buffer_of(x)) buffer->fetch();
}

void let_go(const Tensor& x) {
  if (const auto buffer = buffer_of(x)) buffer->let_go();
}

Tensor strided_tensor(const std::byte* data, DType dtype, std::span<const int64_t> shape,
                      std::span<const int64_t> strides) {
  const auto size = static_cast<size_t>(bits(dtype) / 8);
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  std::vector<std::byte> dense(static_cast<size_t>(count) * size);
  std::vector<int64_t> at(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(dense.data() + static_cast<size_t>(i) * size,
                data + offset * static_cast<int64_t>(size), size);
    for (size_t axis = shape.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++at[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return Tensor::from_bytes(dense, dtype, Dims(shape));
}

namespace {

/// Read piece by piece in the place of touching what is mapped.
NodeRef copied_from_file(Device& device, const MappedFile& file, std::span<const std::byte> part,
                         DType dtype, std::span<const NodeRef> dims) {
  constexpr size_t kPiece = size_t{16} << 20;
  Context& context = device.context();
  std::shared_ptr<Buffer> buffer;
  context.get<BufferTable>().with_swept_memory([&] {
    buffer = device.allocate(static_cast<int64_t>(part.size()), "data from " + file.path());
  });
  const auto begin = static_cast<uint64_t>(part.data() - file.bytes().data());
  std::vector<std::byte> piece(std::min(kPiece, part.size()));
  for (size_t at = 0; at < part.size(); at += kPiece) {
    const auto now = std::span(piece).first(std::min(kPiece, part.size() - at));
    file.read(begin + at, now, context.thread_pool());
    if (is_bool(dtype))
      for (std::byte& b : now) b = std::byte{b != std::byte{0}};
    device.copy_in({buffer.get(), static_cast<int64_t>(at)}, now);
  }
  const NodeRef node = context.get<BufferTable>().add(std::move(buffer), dtype, dims, device.id());
  if (CaptureListener* capture = active_capture(context)) capture->host_data(buffer_id(node), {});
  return node;
}

}  // namespace

Tensor borrowed_tensor(const void* data, DType dtype, std::span<const int64_t> shape,
                       std::shared_ptr<const void> owner) {
  Context& context = Context::current();
  Device& device = context.get<DeviceTable>().default_device();
  const OpScope scope(context, CallSite::here());
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  const int64_t bytes = bytes_for(dtype, count);
  const MappedFile* file = MappedFile::of(owner);
  const auto holds_bools = [&](std::span<const std::byte> elements) {
    if (file != nullptr) file->check();
    return are_bools(elements);
  };
  // Models lie in files byte after byte; the processor's own instructions take any address.
  const bool readable =
      is_aligned(data, dtype) || (file != nullptr && device.target().machine_code);
  const std::span all(static_cast<const std::byte*>(data), static_cast<size_t>(bytes));
  const bool copies = !readable || bytes == 0 || !dynamic_cast<HostDevice*>(&device) ||
                      (is_bool(dtype) && !holds_bools(all));
  if (copies && file != nullptr)
    return scope.result(copied_from_file(device, *file, all, dtype, nodes_of(Dims(shape))));
  if (copies) return Tensor::from_bytes(all, dtype, Dims(shape));
  auto buffer = Buffer::borrow(device, data, bytes, std::move(owner));
  return scope.result(
      context.get<BufferTable>().add(std::move(buffer), dtype, nodes_of(Dims(shape)), device.id()));
}

}  // namespace weft
