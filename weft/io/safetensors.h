// Safetensors: named arrays in a file that is mapped, fully checked before use, and saved
// atomically. The format: https://github.com/huggingface/safetensors#format
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/io/host_array.h"

namespace weft {

using Metadata = std::map<std::string, std::string>;

// What a file holds; arrays sorted by name, no name twice.
struct SafetensorsContent {
  std::vector<NamedArray> arrays;
  Metadata metadata;

  const HostArray* find(std::string_view name) const;
};

constexpr uint64_t kSafetensorsHeaderCap = 100'000'000;  // the reference implementation's

// The arrays are views of the mapped file, which lives as long as any of them.
SafetensorsContent read_safetensors(const std::string& path);
// The same from bytes; `what` names them in errors. The arrays are views of `data`.
SafetensorsContent parse_safetensors(std::span<const std::byte> data, std::string_view what,
                                     std::shared_ptr<const void> owner = nullptr);

// A model of one file, of an index (`*.index.json`) and its shards, or a directory with either.
// Shards must lie inside the index's own directory, links resolved.
SafetensorsContent read_safetensors_model(const std::string& path);

// Replaces `path` atomically. The same arrays give the same bytes, in the order of the format's own
// library: by element size and name, so that every array is aligned to its elements. Names must be
// valid UTF-8, distinct and not "__metadata__".
void save_safetensors(const std::string& path, std::vector<NamedArray> arrays,
                      const Metadata& metadata = {});
// The same with arrays that are made while the file is written, so that one is in memory at a time:
// `made(a)` is the array of an entry of `arrays`, which have no bytes yet.
void save_safetensors(const std::string& path, std::vector<NamedArray> arrays,
                      const Metadata& metadata, FunctionRef<HostArray(const NamedArray&)> made);
// What save_safetensors writes.
std::vector<std::byte> safetensors_bytes(std::vector<NamedArray> arrays,
                                         const Metadata& metadata = {});
// What save_safetensors puts before the data; sorts `arrays` into the order of their data.
std::string safetensors_header(std::vector<NamedArray>& arrays, const Metadata& metadata);

}  // namespace weft
