// The structs of DLPack 1.x, as its ABI lays them out:
// https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once

#include <cstdint>

namespace weft::python::dlpack {

constexpr uint32_t kMajor = 1, kMinor = 0;
constexpr int32_t kCpu = 1;  // kDLCPU
// kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLBool
constexpr uint8_t kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6;
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

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

}  // namespace weft::python::dlpack
