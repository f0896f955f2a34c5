#include <unordered_set>

#include "weft/base/error.h"
#include "weft/io/npy.h"
#include "weft/io/zip.h"

namespace weft {

namespace {

constexpr std::string_view kSuffix = ".npy";

void check_names(std::span<const NamedArray> arrays) {
  std::unordered_set<std::string_view> names;
  for (const NamedArray& named : arrays) {
    if (!names.insert(named.name).second)
      fail("save_npz.name", "two arrays are named {}", quoted_name(named.name));
    if (const char* why = wrong_member_name(named.name))
      fail("save_npz.name", "the name {} {}", quoted_name(named.name), why);
  }
}

}  // namespace

std::vector<NamedArray> parse_npz(std::span<const std::byte> data, std::string_view what,
                                  std::shared_ptr<const void> owner, const UnpackLimits& limits) {
  std::vector<NamedArray> arrays;
  for (const ZipMember& member : parse_zip(data, what, limits)) {
    if (!member.name.ends_with(kSuffix))
      fail_runtime("npy.format", "{}: holds {}, which is no array; unzip other archives", what,
                   quoted_name(member.name));
    const HostArray file = zip_content(member, what, owner);
    const std::string inside = strformat("{}: {}", what, quoted_name(member.name));
    arrays.push_back({member.name.substr(0, member.name.size() - kSuffix.size()),
                      parse_npy(file.bytes, inside, file.owner)});
  }
  return arrays;
}

std::vector<NamedArray> read_npz(const std::string& path, const UnpackLimits& limits) {
  const auto file = MappedFile::open(path);
  return parse_npz(file->bytes(), path, file, limits);
}

void save_npz(const std::string& path, const std::vector<NamedArray>& arrays) {
  check_names(arrays);
  std::vector<std::string> headers;
  for (const NamedArray& named : arrays) headers.push_back(npy_header(named.array));
  atomic_write_file(path, [&](FileWriter& out) {
    ZipWriter zip(out);
    for (size_t i = 0; i < arrays.size(); ++i)
      zip.add(arrays[i].name + std::string(kSuffix), std::as_bytes(std::span(headers[i])),
              arrays[i].array.bytes);
    zip.finish();
  });
}

}  // namespace weft
