// NPY and NPZ: NumPy's files of arrays, as a strict subset: plain numbers, no Python inside.
#pragma once

#include <string>
#include <string_view>

#include "weft/io/archive.h"

namespace weft {

// Bools, integers and floats in versions 1.0 to 3.0. The result is a view of the mapped file; of
// arrays in Fortran's order or of big-endian machines, a copy.
HostArray read_npy(const std::string& path);
// The same from bytes; `what` names them in errors. The array is a view of `data`.
HostArray parse_npy(std::span<const std::byte> data, std::string_view what,
                    std::shared_ptr<const void> owner = nullptr);

// Format version 1.0, atomically; numpy.load() reads it. bf16 has no NumPy type and is refused.
void save_npy(const std::string& path, const HostArray& array);
// What stands before the elements.
std::string npy_header(const HostArray& array);

// The arrays of numpy.savez() and savez_compressed() by name, in the file's order; those that are
// stored are views of the mapped file. Members whose names do not end in ".npy" are Errors.
std::vector<NamedArray> read_npz(const std::string& path, const UnpackLimits& limits = {});
std::vector<NamedArray> parse_npz(std::span<const std::byte> data, std::string_view what,
                                  std::shared_ptr<const void> owner = nullptr,
                                  const UnpackLimits& limits = {});
// Stored, atomically; numpy.load() reads it.
//
//     save_npz("x.npz", {{"x", host_array_of(x)}, {"y", host_array_of(y)}});
void save_npz(const std::string& path, const std::vector<NamedArray>& arrays);

}  // namespace weft
