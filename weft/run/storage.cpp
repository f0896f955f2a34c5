#include "weft/run/storage.h"

#include <algorithm>
#include <utility>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/graph/index_value.h"
#include "weft/run/active_capture.h"

namespace weft {

namespace {
constexpr const char* kNobody = "a tensor";
}  // namespace

Storage::Storage(Context& context, NodeRef value)
    : context_(context), value_(value), made_(current_call_site()) {
  value->roots.fetch_add(1, std::memory_order_relaxed);
  if (value->op == Op::Buffer)
    destination_ = {context.get<BufferTable>().hold(buffer_id(value), this), buffer_id(value)};
  if (StorageListener* listener = storage_listener(context)) listener->created(*this);
}

Storage::~Storage() {
  if (StorageListener* listener = storage_listener(context_)) listener->destroyed(*this);
  NodeRef value = value_.load(std::memory_order_relaxed);
  value->roots.fetch_sub(1, std::memory_order_release);
  BufferTable& buffers = context_.get<BufferTable>();
  const int64_t id = std::exchange(destination_, Destination{}).id;
  if (id >= 0)
    buffers.leave(id, this);
  else
    buffers.left_lazy();
}

void Storage::read_marked() const {
  if (lost()) {
    std::lock_guard lock(mutex_);
    fail_runtime("storage.lost", "{}", why_lost_);
  }
  if (CaptureListener* capture = active_capture(context_)) capture->read_shared(*this);
}

NodeRef Storage::value() const {
  if (marks_.load(std::memory_order_acquire) != 0) read_marked();
  NodeRef n = value_.load(std::memory_order_acquire);
  if (n->op != Op::Buffer)
    if (CaptureListener* capture = active_capture(context_)) capture->read_lazy(*this, n);
  return n;
}

void Storage::set_value(NodeRef value) {
  replace(value);
  writes_.fetch_add(1, std::memory_order_relaxed);
  if (StorageListener* listener = storage_listener(context_)) listener->written(*this);
}

void Storage::replace(NodeRef value) {
  BufferTable& buffers = context_.get<BufferTable>();
  Destination left;  // destroyed outside the lock
  if (value->op == Op::Buffer && buffer_id(value) != destination_.id) {
    std::shared_ptr<Buffer> buffer = buffers.hold(buffer_id(value), this);
    std::lock_guard lock(mutex_);
    left = std::exchange(destination_, Destination{std::move(buffer), buffer_id(value)});
  }
  value->roots.fetch_add(1, std::memory_order_relaxed);
  NodeRef old = value_.exchange(value, std::memory_order_acq_rel);
  old->roots.fetch_sub(1, std::memory_order_release);
  if (lost()) marks_.fetch_and(static_cast<uint8_t>(~kLost), std::memory_order_release);
  if (left.id >= 0) buffers.leave(left.id, this);
}

std::shared_ptr<Buffer> Storage::buffer() const {
  NodeRef n = value();
  return n->op == Op::Buffer ? context_.get<BufferTable>().find(buffer_id(n)) : nullptr;
}

void Storage::set_label(std::string_view label) {
  std::lock_guard lock(mutex_);
  label_ = label;
}

BufferLabel Storage::memory_label() const {
  std::lock_guard lock(mutex_);
  if (!label_.empty()) return label_;
  return made_ ? BufferLabel({}, made_) : kNobody;
}

std::string Storage::label() const { return memory_label().text(); }

std::string Storage::label_as(std::string_view name) const {
  const std::string own = label();
  return own == name || own == kNobody ? std::string(name) : strformat("{} ({})", name, own);
}

void Storage::mark_lost(std::string why) {
  std::lock_guard lock(mutex_);
  why_lost_ = std::move(why);
  marks_.fetch_or(kLost, std::memory_order_release);
}

// ---- data of the host

bool are_bools(std::span<const std::byte> data) {
  return std::all_of(data.begin(), data.end(), [](std::byte b) { return b <= std::byte{1}; });
}

NodeRef buffer_from_bytes(Context& context, std::span<const std::byte> data, DType dtype,
                          std::span<const NodeRef> dims, DeviceId device, std::string_view label) {
  std::vector<std::byte> bools;
  if (is_bool(dtype) && !are_bools(data)) {
    bools.assign(data.begin(), data.end());
    for (std::byte& b : bools) b = std::byte{b != std::byte{0}};
    data = bools;
  }
  DeviceTable& devices = context.get<DeviceTable>();
  Device& target = device ? devices.open(device) : devices.default_device();
  const int64_t bytes = bytes_for(dtype, bound_numel(dims));
  if (static_cast<int64_t>(data.size()) != bytes)
    internal_error("storage", "{} bytes of data for a shape of {} bytes", data.size(), bytes);
  std::shared_ptr<Buffer> buffer = target.allocate(
      bytes, label.empty() ? BufferLabel("data from the host", current_call_site()) : label);
  target.copy_in({buffer.get(), 0}, data);
  NodeRef node = context.get<BufferTable>().add(std::move(buffer), dtype, dims, target.id());
  if (CaptureListener* capture = active_capture(context))
    capture->host_data(buffer_id(node), label);
  return node;
}

std::shared_ptr<Storage> storage_from_bytes(Context& context, std::span<const std::byte> data,
                                            DType dtype, std::span<const NodeRef> dims,
                                            DeviceId device, std::string_view label) {
  Graph::Building building(tensor_graph(context));
  auto storage = std::make_shared<Storage>(
      context, buffer_from_bytes(context, data, dtype, dims, device, label));
  if (!label.empty()) storage->set_label(label);
  return storage;
}

namespace {

int64_t bytes_of(const Storage& storage) {
  const NodeRef n = storage.value();
  return bytes_for(n->dtype, bound_numel(n->shape->span()));
}

/// What the host is about to read.
std::shared_ptr<Buffer> buffer_to_read(const Storage& storage) {
  if (CaptureListener* capture = active_capture(storage.context())) capture->host_read(storage);
  std::shared_ptr<Buffer> buffer = storage.buffer();
  if (!buffer) internal_error("storage", "{} is read before it was realized", storage.label());
  return buffer;
}

}  // namespace

void copy_to_host(const Storage& storage, std::span<std::byte> out) {
  const std::shared_ptr<Buffer> buffer = buffer_to_read(storage);
  const int64_t bytes = bytes_of(storage);
  if (static_cast<int64_t>(out.size()) != bytes)
    internal_error("storage", "{} bytes for a tensor of {} bytes", out.size(), bytes);
  if (bytes > 0) buffer->device().copy_out(out, {buffer.get(), 0});
}

void copy_to_host(const Storage& storage,
                  FunctionRef<void(int64_t, std::span<const std::byte>)> take) {
  constexpr int64_t kPiece = int64_t{16} << 20;
  const std::shared_ptr<Buffer> buffer = buffer_to_read(storage);
  const int64_t bytes = bytes_of(storage);
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kPiece, bytes)));
  for (int64_t at = 0; at < bytes; at += kPiece) {
    const auto now = std::span(piece).first(static_cast<size_t>(std::min(kPiece, bytes - at)));
    buffer->device().copy_out(now, {buffer.get(), at});
    take(at, now);
  }
}

std::vector<std::byte> storage_to_bytes(const Storage& storage) {
  std::vector<std::byte> out(static_cast<size_t>(bytes_of(storage)));
  copy_to_host(storage, out);
  return out;
}

}  // namespace weft
