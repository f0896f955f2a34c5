#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/io/json_reader.h"
#include "weft/io/safetensors.h"

namespace weft {

namespace {

// As the format's own library has it, so that equal tensors make equal files.
constexpr uint64_t kDataAlignment = 8;

void check_name(const std::string& name) {
  if (name == "__metadata__") {
    fail("save_safetensors.name", "'__metadata__' names the header's own entry; rename the tensor");
  }
  if (name.size() > JsonReader::kLongestString) {
    fail("save_safetensors.name", "a tensor's name of {} bytes; at most {} can be read back",
         name.size(), JsonReader::kLongestString);
  }
  // The writer replaces what is not UTF-8; then the name would not come back.
  if (JsonReader(json_quote(name), "name").string() != name) {
    fail("save_safetensors.name", "{} is not UTF-8, as names must be", quoted_name(name));
  }
}

void check_arrays(std::span<const NamedArray> arrays) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto& [name, array] = arrays[i];
    check_name(name);
    if (row(array.dtype).safetensors_name.empty()) {
      fail_type("save_safetensors.dtype", "'{}' is {}, which the format does not have", name,
                weft::name(array.dtype));
    }
    if (i > 0 && arrays[i - 1].name == name) {
      fail("save_safetensors.name", "two tensors are named '{}'; names must be distinct", name);
    }
  }
}

/// What the array's elements take, which its bytes are once they are there.
uint64_t size_of(const HostArray& array) {
  return static_cast<uint64_t>(checked_bytes(array.dtype, array.shape).value_or(0));
}

void check_bytes(const NamedArray& named) {
  const auto& [name, array] = named;
  if (checked_bytes(array.dtype, array.shape) == static_cast<int64_t>(array.bytes.size())) return;
  fail("save_safetensors.shape", "'{}' has {} bytes, but its shape {} of {} needs another count",
       name, array.bytes.size(), shape_text(array.shape), weft::name(array.dtype));
}

void write_entry(JsonWriter& json, const NamedArray& named, uint64_t begin) {
  json.key(named.name).begin_object();
  json.field("dtype", row(named.array.dtype).safetensors_name);
  json.key("shape").begin_array();
  for (const int64_t dim : named.array.shape) json.value(dim);
  json.end_array();
  json.key("data_offsets").begin_array();
  json.value(begin).value(begin + size_of(named.array)).end_array().end_object();
}

// Where each array's data goes, by position in the name order.
std::vector<uint64_t> place(std::span<const NamedArray> arrays, std::vector<size_t>& data_order) {
  data_order.resize(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) data_order[i] = i;
  // Wide elements first, else by name.
  std::ranges::sort(data_order, {},
                    [&](size_t i) { return std::pair(-bits(arrays[i].array.dtype), i); });
  std::vector<uint64_t> begins(arrays.size());
  uint64_t at = 0;
  for (const size_t i : data_order) {
    begins[i] = at;
    at += size_of(arrays[i].array);
  }
  return begins;
}

void write_metadata(JsonWriter& json, const Metadata& metadata) {
  if (metadata.empty()) return;
  json.key("__metadata__").begin_object();
  for (const auto& [key, value] : metadata) json.field(key, value);
  json.end_object();
}

void check_header_size(size_t size) {
  if (size <= kSafetensorsHeaderCap) return;
  fail("save_safetensors.header",
       "the header would be {} bytes; the format allows {}, and no reader "
       "would load the file. Use fewer tensors, shorter names or less metadata",
       size, kSafetensorsHeaderCap);
}

}  // namespace

std::string safetensors_header(std::vector<NamedArray>& arrays, const Metadata& metadata) {
  std::ranges::sort(arrays, {}, &NamedArray::name);
  check_arrays(arrays);
  std::vector<size_t> data_order;
  const std::vector<uint64_t> begins = place(arrays, data_order);

  JsonWriter json;
  json.begin_object();
  write_metadata(json, metadata);
  for (const size_t i : data_order) write_entry(json, arrays[i], begins[i]);
  std::string text = json.end_object().take();
  const uint64_t prefix = sizeof(uint64_t);
  text.append((kDataAlignment - (prefix + text.size()) % kDataAlignment) % kDataAlignment, ' ');
  check_header_size(text.size());

  std::vector<NamedArray> in_data_order;
  for (const size_t i : data_order) in_data_order.push_back(std::move(arrays[i]));
  arrays = std::move(in_data_order);
  return text;
}

namespace {

using Made = FunctionRef<HostArray(const NamedArray&)>;

void write_all(std::vector<NamedArray> arrays, const Metadata& metadata, Made made,
               FunctionRef<void(std::span<const std::byte>)> write) {
  const std::string header = safetensors_header(arrays, metadata);
  const uint64_t size = header.size();
  write(std::as_bytes(std::span(&size, 1)));
  write(std::as_bytes(std::span(header)));
  for (const NamedArray& named : arrays) {
    const NamedArray whole{named.name, made(named)};
    check_bytes(whole);
    write(whole.array.bytes);
  }
}

constexpr auto kAsItIs = [](const NamedArray& named) { return named.array; };

}  // namespace

std::vector<std::byte> safetensors_bytes(std::vector<NamedArray> arrays, const Metadata& metadata) {
  for (const NamedArray& named : arrays) check_bytes(named);
  std::vector<std::byte> out;
  write_all(std::move(arrays), metadata, kAsItIs, [&](std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  });
  return out;
}

void save_safetensors(const std::string& path, std::vector<NamedArray> arrays,
                      const Metadata& metadata) {
  for (const NamedArray& named : arrays) check_bytes(named);
  save_safetensors(path, std::move(arrays), metadata, kAsItIs);
}

void save_safetensors(const std::string& path, std::vector<NamedArray> arrays,
                      const Metadata& metadata, Made made) {
  atomic_write_file(path, [&](FileWriter& out) {
    write_all(std::move(arrays), metadata, made,
              [&](std::span<const std::byte> bytes) { out.write(bytes); });
  });
}

}  // namespace weft
