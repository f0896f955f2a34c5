#include "weft/io/disk.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "weft/base/checked.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/device/buffer.h"
#include "weft/run/storage.h"
#include "weft/tensor/access.h"

namespace weft {

namespace {

struct File {
  std::weak_ptr<Storage> storage;
  std::string path;
  uint64_t offset = 0;  // of the elements in it
};

/// Which storages of a context are files.
struct DiskTensors {
  std::mutex mutex;
  std::map<const TensorCell*, File> files;
};

void note_file(const Tensor& x, const std::string& path, uint64_t offset) {
  auto& disk = x.context().get<DiskTensors>();
  std::lock_guard lock(disk.mutex);
  std::erase_if(disk.files, [](const auto& entry) { return entry.second.storage.expired(); });
  disk.files[x.cell().get()] = {TensorAccess::shared(x),
                                std::filesystem::absolute(path).lexically_normal(), offset};
}

std::optional<File> file_of(const Tensor& x) {
  auto* disk = x.context().get_if<DiskTensors>();
  if (!disk) return std::nullopt;
  std::lock_guard lock(disk->mutex);
  const auto at = disk->files.find(x.cell().get());
  if (at == disk->files.end() || at->second.storage.expired()) return std::nullopt;
  return at->second;
}

/// Whether the elements of a realized tensor lie in that file.
bool lies_in(const Tensor& x, const std::string& path) {
  const MappedFile* file = MappedFile::of(x.cell()->buffer()->owner());
  std::error_code none;
  return file != nullptr && std::filesystem::equivalent(file->path(), path, none);
}

/// Beside x itself, which is realized, that takes the memory of a piece.
void write(const Tensor& x, const std::string& path, uint64_t offset) {
  const Tensor attached = TensorAccess::attached(x);
  const Tensor whole = attached.is_view() ? x.contiguous() : attached;
  if (!whole.cell()->realized()) whole.realize();
  grow_file(path, offset + static_cast<uint64_t>(bytes_for(x.dtype(), x.numel())));
  const auto put = [&](int64_t at, std::span<const std::byte> piece) {
    overwrite_file(path, offset + static_cast<uint64_t>(at), piece);
  };
  // What is written over there is not read any more.
  if (lies_in(whole, path)) return put(0, storage_to_bytes(*whole.cell()));
  copy_to_host(*whole.cell(), put);
}

}  // namespace

std::optional<std::string> disk_path(std::string_view device) {
  constexpr std::string_view kKind = "disk:";
  if (device.size() < kKind.size()) return std::nullopt;
  for (size_t i = 0; i < kKind.size(); ++i)
    if ((device[i] | 0x20) != (kKind[i] | 0x20)) return std::nullopt;
  return std::string(device.substr(kKind.size()));
}

std::optional<std::string> disk_path(const Tensor& x) {
  const std::optional<File> file = file_of(x);
  return file ? std::optional(file->path) : std::nullopt;
}

void leave_disk(const Tensor& x) {
  auto* disk = x.context().get_if<DiskTensors>();
  if (!disk) return;
  std::lock_guard lock(disk->mutex);
  disk->files.erase(x.cell().get());
}

Tensor tensor_from_file(const std::string& path, DType dtype, uint64_t offset,
                        const std::optional<Dims>& shape) {
  const auto file = MappedFile::open(path);
  const uint64_t there = file->bytes().size(), size = static_cast<uint64_t>(bits(dtype) / 8);
  const uint64_t left = offset <= there ? there - offset : 0;
  const auto count = static_cast<int64_t>(left / size);
  const int64_t wanted = shape ? shape->product().value() : count;
  if (offset > there || wanted > count || (!shape && left % size != 0))
    fail("disk.size", "{}: {} bytes from offset {} are not {} of {} ({} bytes each)", path, left,
         offset, shape ? shape->text() : "whole elements", name(dtype), size);
  if (wanted == 0) return Tensor::empty(shape.value_or(Dims{0}), dtype, CallSite());
  std::vector<int64_t> sizes{wanted};
  if (shape) {
    sizes.clear();
    for (const Dim& d : *shape) sizes.push_back(d.value());
  }
  const Tensor x = borrowed_tensor(file->bytes().data() + offset, dtype, sizes, file);
  note_file(x, path, offset);
  return x;
}

Tensor tensor_on_disk(const std::string& path, DType dtype, const Dims& shape) {
  const int64_t count = shape.product().value();
  const auto size = static_cast<uint64_t>(mul_or_fail("disk", count, bits(dtype) / 8));
  grow_file(path, size);
  if (size == 0) return Tensor::zeros(shape, dtype, CallSite());
  return tensor_from_file(path, dtype, 0, shape);
}

Tensor stored_on_disk(const Tensor& x, const std::string& path) {
  write(x, path, 0);
  return tensor_on_disk(path, x.dtype(), x.dims());
}

void write_to_disk(const Tensor& x) {
  if (const auto file = file_of(x))
    write(TensorAccess::whole(TensorAccess::shared(x)), file->path, file->offset);
}

}  // namespace weft
