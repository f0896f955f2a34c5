#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/json_reader.h"
#include "weft/io/safetensors.h"

namespace weft {

namespace {

constexpr size_t kIndexCap = size_t{64} << 20;
constexpr std::string_view kIndexSuffix = ".index.json";

using Shards = std::map<std::string, std::vector<std::string>>;  // file -> names it must hold

std::string real_path(const std::string& path) {
  check_path(path);
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) fail_errno("file.missing", "cannot open " + path, errno);
  std::string text = real;
  std::free(real);
  return text;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

void read_weight_map(JsonReader& json, Shards& shards) {
  Metadata seen;
  std::string tensor;
  json.begin_object();
  while (json.next_key(tensor)) {
    const std::string file = json.string();
    if (!seen.emplace(tensor, file).second) json.fail_here("a tensor listed twice");
    shards[file].push_back(tensor);
  }
}

Shards read_index(const std::string& path) {
  const MappedFile file(path);
  if (file.bytes().size() > kIndexCap) {
    fail_runtime("safetensors.index", "{}: {} bytes, and an index has at most {}; is it one?", path,
                 file.bytes().size(), kIndexCap);
  }
  JsonReader json(file.text(), path);
  Shards shards;
  bool found = false;
  std::string key;
  json.begin_object();
  while (json.next_key(key)) {
    if (key != "weight_map") {
      json.skip();
      continue;
    }
    if (found) json.fail_here("a second weight_map");
    found = true;
    read_weight_map(json, shards);
  }
  json.end();
  if (!found) {
    fail_runtime("safetensors.index", "{}: has no weight_map, so it is not the index of a model",
                 path);
  }
  return shards;
}

// The shard's real path. A name that could lead out of `directory` is refused before it is opened.
std::string shard_path(const std::string& index, const std::string& directory,
                       const std::string& file) {
  const bool plain = !file.empty() && file != "." && file != ".." &&
                     file.find_first_of(std::string_view("/\\:\0", 4)) == std::string::npos;
  if (!plain) {
    fail_runtime("safetensors.index",
                 "{}: names the shard {}; a shard must be a plain file "
                 "name in the index's own directory",
                 index, quoted_name(file));
  }
  const std::string real = real_path(directory + "/" + file);
  if (directory_of(real) != directory + "/") {
    fail_runtime("safetensors.index",
                 "{}: the shard {} is a link to {}, outside the model's "
                 "directory {}; put the file itself there",
                 index, quoted_name(file), real, directory);
  }
  return real;
}

void take_shard(const std::string& path, std::vector<std::string> names,
                SafetensorsContent& model) {
  SafetensorsContent shard = read_safetensors(path);
  std::ranges::sort(names);
  for (const NamedArray& named : shard.arrays) {
    if (std::ranges::binary_search(names, named.name)) continue;
    fail_runtime("safetensors.index",
                 "{}: holds {}, which the index does not place there; "
                 "the files do not belong together",
                 path, quoted_name(named.name));
  }
  for (const std::string& name : names) {
    if (shard.find(name) != nullptr) continue;
    fail_runtime("safetensors.index",
                 "{}: lacks {}, which the index places there; the "
                 "download is incomplete or mixes two models",
                 path, quoted_name(name));
  }
  std::ranges::move(shard.arrays, std::back_inserter(model.arrays));
  model.metadata.merge(shard.metadata);
}

SafetensorsContent read_indexed(const std::string& path) {
  const Shards shards = read_index(path);
  std::string directory = directory_of(real_path(path));
  if (directory.size() > 1) directory.pop_back();
  std::map<std::string, std::string> files;  // real path -> name in the index
  for (const auto& [file, names] : shards) {
    const auto [other, fresh] = files.emplace(shard_path(path, directory, file), file);
    if (!fresh) {
      fail_runtime("safetensors.index", "{}: the shards {} and {} are the same file", path,
                   quoted_name(other->second), quoted_name(file));
    }
  }
  SafetensorsContent model;
  for (const auto& [real, file] : files) take_shard(real, shards.at(file), model);
  std::ranges::sort(model.arrays, {}, &NamedArray::name);
  return model;
}

std::string model_file(const std::string& directory) {
  for (const char* leaf : {"model.safetensors.index.json", "model.safetensors"}) {
    std::string path = directory + "/" + leaf;
    if (file_exists(path)) return path;
  }
  fail_runtime("file.missing", "{} has neither model.safetensors nor model.safetensors.index.json",
               directory);
}

}  // namespace

SafetensorsContent read_safetensors_model(const std::string& path) {
  const std::string file = is_directory(path) ? model_file(path) : path;
  if (file.ends_with(kIndexSuffix)) return read_indexed(file);
  return read_safetensors(file);
}

}  // namespace weft
