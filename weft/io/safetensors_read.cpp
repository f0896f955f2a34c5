#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/reader.h"
#include "weft/io/json_reader.h"
#include "weft/io/safetensors.h"

namespace weft {

namespace {

constexpr size_t kMostDims = 64;
// In the format, but not in weft.
constexpr std::string_view kForeignTypes[] = {"F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "C64"};

// One entry of the header, offsets as yet unchecked.
struct Entry {
  std::string name;
  DType dtype = DType::Void;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
  uint64_t listed = 0;  // where in the file
};

struct Header {
  std::vector<Entry> entries;
  Metadata metadata;
};

class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::string_view what)
      : json_(text, what, sizeof(uint64_t)), what_(what) {}

  Header read() {
    bool has_metadata = false;
    std::string key;
    json_.begin_object();
    while (json_.next_key(key)) {
      if (key != "__metadata__") {
        read_entry(key);
        continue;
      }
      if (std::exchange(has_metadata, true)) fail_twice(key, json_.offset());
      read_metadata();
    }
    json_.end();
    sort_by_name();
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail_twice(std::string_view key, uint64_t offset) const {
    fail_runtime("safetensors.header",
                 "{}: {} is listed twice, again at offset {}; the file "
                 "was not written by a correct program",
                 what_, quoted_name(key), offset);
  }

  // Names that are equal are neighbours then.
  void sort_by_name() {
    const auto order = [](const Entry& e) { return std::pair(std::string_view(e.name), e.listed); };
    std::vector<Entry>& all = header_.entries;
    if (!std::ranges::is_sorted(all, {}, order)) std::ranges::sort(all, {}, order);
    const auto twice = std::ranges::adjacent_find(all, {}, &Entry::name);
    if (twice != all.end()) fail_twice(twice->name, (twice + 1)->listed);
  }

  void read_metadata() {
    std::string key;
    json_.begin_object();
    while (json_.next_key(key)) {
      if (json_.peek() != '"') {
        json_.fail_here("a __metadata__ value that is not a string");
      }
      if (!header_.metadata.emplace(key, json_.string()).second) {
        json_.fail_here("a __metadata__ key listed twice");
      }
    }
  }

  void read_entry(const std::string& name) {
    Entry entry;
    entry.name = name;
    entry.listed = json_.offset();
    unsigned fields = 0;
    std::string field;
    json_.begin_object();
    while (json_.next_key(field)) {
      const unsigned bit = read_field(entry, field);
      if ((fields & bit) != 0) json_.fail_here("a field listed twice");
      fields |= bit;
    }
    if (fields != 7) {
      fail_runtime("safetensors.header",
                   "{}: {} lacks {} in the header at offset {}; the file is "
                   "damaged",
                   what_, quoted_name(name),
                   (fields & 1) == 0   ? "dtype"
                   : (fields & 2) == 0 ? "shape"
                                       : "data_offsets",
                   json_.offset());
    }
    header_.entries.push_back(std::move(entry));
  }

  unsigned read_field(Entry& entry, std::string_view field) {
    if (field == "dtype") {
      entry.dtype = read_dtype(entry.name);
      return 1;
    }
    if (field == "shape") {
      read_shape(entry);
      return 2;
    }
    if (field == "data_offsets") {
      read_offsets(entry);
      return 4;
    }
    json_.fail_here("an unknown field " + quoted_name(field) + " of " + quoted_name(entry.name));
  }

  DType read_dtype(std::string_view tensor) {
    const std::string text = json_.string();
    if (const auto dtype = dtype_from_safetensors(text)) return *dtype;
    const bool foreign = std::ranges::find(kForeignTypes, text) != std::end(kForeignTypes);
    fail_runtime("safetensors.dtype",
                 "{}: {} has dtype {}, which {}; weft reads BOOL, U8-U64, "
                 "I8-I64, F8 of four kinds, F16, BF16, F32 and F64",
                 what_, quoted_name(tensor), quoted_name(text),
                 foreign ? "weft does not support yet: convert it first"
                         : "the format does not have: the file is damaged");
  }

  void read_shape(Entry& entry) {
    json_.begin_array();
    while (json_.next_item()) {
      const uint64_t dim = json_.unsigned_integer();
      if (dim > INT64_MAX) json_.fail_here("a dimension of 2^63 or more");
      if (entry.shape.size() == kMostDims) json_.fail_here("a shape of more than 64 dimensions");
      entry.shape.push_back(static_cast<int64_t>(dim));
    }
  }

  void read_offsets(Entry& entry) {
    json_.begin_array();
    if (!json_.next_item()) json_.fail_here("data_offsets without a begin");
    entry.begin = json_.unsigned_integer();
    if (!json_.next_item()) json_.fail_here("data_offsets without an end");
    entry.end = json_.unsigned_integer();
    if (json_.next_item()) json_.fail_here("data_offsets of more than two numbers");
  }

  JsonReader json_;
  std::string_view what_;
  Header header_;
};

std::string_view header_text(std::span<const std::byte> data, std::string_view what) {
  ByteReader reader(data, what);
  const uint64_t size = reader.u64();
  if (size > kSafetensorsHeaderCap) {
    fail_runtime("safetensors.header",
                 "{}: promises a header of {} bytes; the format allows {}, so "
                 "this is not a safetensors file or it is damaged",
                 what, size, kSafetensorsHeaderCap);
  }
  const std::string_view text = reader.text(size);
  if (text.size() < 2 || text[0] != '{') {
    fail_runtime("safetensors.header",
                 "{}: its header of {} bytes at offset 8 must begin with '{{'; "
                 "this is not a safetensors file or it is damaged",
                 what, size);
  }
  if (text.find_last_not_of(' ') != text.rfind('}')) {
    fail_runtime("safetensors.header",
                 "{}: only spaces may follow the header's last '}}', up to "
                 "offset {}; the file is damaged",
                 what, 8 + size);
  }
  return text;
}

void check_size(const Entry& entry, std::string_view what) {
  const std::optional<int64_t> bytes = checked_bytes(entry.dtype, entry.shape);
  const bool fits =
      bytes && entry.begin <= entry.end && static_cast<uint64_t>(*bytes) == entry.end - entry.begin;
  if (fits) return;
  fail_runtime("safetensors.size",
               "{}: {} of shape {} {} needs {} bytes, but its offsets {} to "
               "{} do not hold exactly that; the file is damaged",
               what, quoted_name(entry.name), shape_text(entry.shape), name(entry.dtype),
               bytes ? std::to_string(*bytes) : "more than 2^63", entry.begin, entry.end);
}

// The arrays must cover the data exactly: no overlap, no hole, nothing left over.
void check_layout(const std::vector<Entry>& entries, uint64_t data_bytes, std::string_view what) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) order.push_back(&entry);
  const auto extent = [](const Entry* e) { return std::pair(e->begin, e->end); };
  if (!std::ranges::is_sorted(order, {}, extent)) std::ranges::sort(order, {}, extent);
  uint64_t at = 0;
  for (const Entry* each : order) {
    const Entry& entry = *each;
    check_size(entry, what);
    if (entry.begin != at) {
      fail_runtime("safetensors.layout",
                   "{}: {} begins at data offset {}, but the arrays "
                   "before it end at {}: {}; the file was not written by a correct program",
                   what, quoted_name(entry.name), entry.begin, at,
                   entry.begin < at ? "they overlap" : "a hole");
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    fail_runtime("safetensors.layout",
                 "{}: its arrays take {} bytes of data, but {} are there; the "
                 "file is {}",
                 what, at, data_bytes,
                 at > data_bytes ? "cut short: fetch it again" : "damaged: bytes follow its end");
  }
}

}  // namespace

const HostArray* SafetensorsContent::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(arrays, name, {}, &NamedArray::name);
  return at != arrays.end() && at->name == name ? &at->array : nullptr;
}

SafetensorsContent parse_safetensors(std::span<const std::byte> data, std::string_view what,
                                     std::shared_ptr<const void> owner) {
  const std::string_view text = header_text(data, what);
  Header header = HeaderReader(text, what).read();
  const std::span<const std::byte> content = data.subspan(sizeof(uint64_t) + text.size());
  check_layout(header.entries, content.size(), what);

  SafetensorsContent result;
  result.metadata = std::move(header.metadata);
  result.arrays.reserve(header.entries.size());
  for (Entry& entry : header.entries) {
    const auto bytes = content.subspan(entry.begin, entry.end - entry.begin);
    result.arrays.push_back(
        {std::move(entry.name), {entry.dtype, std::move(entry.shape), bytes, owner}});
  }
  return result;
}

SafetensorsContent read_safetensors(const std::string& path) {
  auto file = MappedFile::open(path);
  return parse_safetensors(file->bytes(), path, file);
}

}  // namespace weft
