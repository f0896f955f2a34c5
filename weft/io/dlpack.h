// DLPack 1.x: its structs, as the ABI lays them out, and tensors to and from them.
// https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once

#include <cstdint>
#include <memory>

#include "weft/io/host_memory.h"

namespace weft::dlpack {

constexpr uint32_t kMajor = 1, kMinor = 0;
constexpr int32_t kCpu = 1;  // kDLCPU
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;

struct Version {
  uint32_t major, minor;
};
struct Place {
  int32_t type, id;
};
struct ElementType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Array {
  void* data;
  Place device;
  int32_t ndim;
  ElementType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
/// Before 1.0.
struct Managed {
  Array array;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Array array;
};

/// What an exported view is kept by, in either form (M); its deleter frees it, on any thread.
template <class M>
M* export_view(std::unique_ptr<HostView> view, uint64_t flags);

/// Whether the elements lie one after the other, the last axis fastest.
bool is_row_major(const Array& a);

/// A tensor of what a producer described, which nothing here trusts but its address: without a copy
/// where elements lie in row-major order. `owner` gives the memory back with its last reader.
Tensor import_array(const Array& a, std::shared_ptr<const void> owner, bool copies);
/// The same of the versioned form, whose version is looked at.
Tensor import_array(std::shared_ptr<const ManagedVersioned> managed, bool copies);

}  // namespace weft::dlpack
