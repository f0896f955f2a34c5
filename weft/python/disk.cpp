// "DISK:path": a tensor that is a file is read where it is mapped, and written whole when it
// changes.
#include "weft/python/disk.h"

#include <nanobind/nanobind.h>

#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "weft/base/checked.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/tensor/access.h"

namespace weft::python {

namespace {

struct File {
  std::weak_ptr<Storage> storage;
  std::string path;
};

/// Which storages of a context are files.
struct DiskTensors {
  std::mutex mutex;
  std::map<const TensorCell*, File> files;
};

void write(const Tensor& x, const std::string& path) {
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(x.dtype(), x.numel())));
  {
    const Released released;
    x.copy_to(bytes, CallSite());
  }
  grow_file(path, bytes.size());
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) fail("file.write", "{} cannot be written", path);
}

}  // namespace

void note_file(const Tensor& x, const std::string& path) {
  auto& disk = x.context().get<DiskTensors>();
  std::lock_guard lock(disk.mutex);
  std::erase_if(disk.files, [](const auto& entry) { return entry.second.storage.expired(); });
  disk.files[x.cell().get()] = {TensorAccess::shared(x), path};
}

std::optional<std::string> disk_path(std::string_view device) {
  constexpr std::string_view kKind = "disk:";
  if (device.size() < kKind.size()) return std::nullopt;
  for (size_t i = 0; i < kKind.size(); ++i)
    if ((device[i] | 0x20) != (kKind[i] | 0x20)) return std::nullopt;
  return std::string(device.substr(kKind.size()));
}

std::optional<std::string> disk_path(const Tensor& x) {
  auto* disk = x.context().get_if<DiskTensors>();
  if (!disk) return std::nullopt;
  std::lock_guard lock(disk->mutex);
  const auto at = disk->files.find(x.cell().get());
  if (at == disk->files.end() || at->second.storage.expired()) return std::nullopt;
  return at->second.path;
}

Tensor tensor_on_disk(const std::string& path, DType dtype, const Dims& shape) {
  const int64_t count = shape.product().value();
  const auto size = static_cast<size_t>(mul_or_fail("disk", count, bits(dtype) / 8));
  grow_file(path, size);
  if (size == 0) return Tensor::zeros(shape, dtype, CallSite());
  auto file = std::make_shared<MappedFile>(path);
  const Tensor flat = borrowed_tensor(file->bytes().data(), dtype, std::array{count}, file);
  // A handle of its own, so that the shape is that of the whole.
  const OpScope scope(flat, CallSite());
  const Tensor x = scope.result(flat.reshape(shape, CallSite()).node());
  note_file(x, path);
  return x;
}

Tensor stored_on_disk(const Tensor& x, const std::string& path) {
  write(x, path);
  return tensor_on_disk(path, x.dtype(), x.dims());
}

void write_to_disk(const Tensor& x) {
  if (const auto path = disk_path(x)) write(TensorAccess::whole(TensorAccess::shared(x)), *path);
}

}  // namespace weft::python
