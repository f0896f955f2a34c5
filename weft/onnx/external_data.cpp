#include "weft/onnx/external_data.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "weft/base/error.h"
#include "weft/io/host_array.h"

namespace weft::onnx {

namespace {

/// "" where there is no such file.
std::string real_path(const std::string& path) {
  check_path(path);
  char* real = ::realpath(path.c_str(), nullptr);
  std::string text = real == nullptr ? "" : real;
  std::free(real);
  return text;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Parts of a path that can only lead downward.
bool stays_below(std::string_view path) {
  if (path.empty() || path.find_first_of(std::string_view("\\:\0", 3)) != std::string_view::npos)
    return false;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "..") return false;
    at = end + 1;
  }
  return path != "." && !path.ends_with("/.");
}

bool is_below(const std::string& path, const std::string& directory) {
  const std::string prefix = directory == "/" ? directory : directory + "/";
  return path.compare(0, prefix.size(), prefix) == 0;
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

ExternalData ExternalData::in(std::string_view directory) {
  ExternalData data;
  if (directory.empty()) return data;
  const std::string real = real_path(std::string(directory));
  if (!real.empty()) data.directories_.push_back(real);
  return data;
}

ExternalData ExternalData::beside(const std::string& model) {
  ExternalData data = in(directory_of(model));
  const std::string own = directory_of(real_path(model));
  if (data.directories_.empty() || own != data.directories_[0]) data.directories_.push_back(own);
  return data;
}

std::string ExternalData::resolved(std::string_view model, std::string_view tensor,
                                   const std::string& location) const {
  if (directories_.empty())
    fail_runtime("onnx.external",
                 "{}: {} lies in the file {}, and a model given as bytes has no directory: read it "
                 "from its file",
                 model, quoted_name(tensor), quoted_name(location));
  if (!stays_below(location))
    fail_runtime("onnx.external",
                 "{}: {} lies in the file {}; external data must be inside of the model's own "
                 "directory, named by a relative path without ..",
                 model, quoted_name(tensor), quoted_name(location));
  const std::string real = real_path(directories_[0] + "/" + location);
  if (real.empty())
    fail_runtime("onnx.external", "{}: {} lies in the file {}, which is not in {}; put it there",
                 model, quoted_name(tensor), quoted_name(location), directories_[0]);
  for (const std::string& directory : directories_)
    if (is_below(real, directory)) return real;
  fail_runtime("onnx.external",
               "{}: {} lies in {}, which is a link to {}, outside of the model's directory {}; put "
               "the file itself there",
               model, quoted_name(tensor), quoted_name(location), quoted_name(real),
               directories_[0]);
}

ExternalData::Slice ExternalData::slice(std::string_view model, std::string_view tensor,
                                        const std::string& location, std::string_view offset,
                                        std::string_view length) {
  const std::string path = resolved(model, tensor, location);
  std::shared_ptr<const MappedFile>& file = files_[path];
  if (!file) file = MappedFile::open(path);
  const uint64_t size = file->bytes().size();
  const std::optional<uint64_t> begin = offset.empty() ? 0 : number_of(offset);
  const std::optional<uint64_t> count = !length.empty()           ? number_of(length)
                                        : begin && *begin <= size ? size - *begin
                                                                  : 0;
  if (!begin || !count || *begin > size || *count > size - *begin)
    fail_runtime("onnx.external",
                 "{}: {} is to be {} bytes at byte {} of {}, which has {} bytes; the files do not "
                 "belong together",
                 model, quoted_name(tensor), quoted_name(length), quoted_name(offset),
                 quoted_name(location), size);
  return {file->bytes().subspan(static_cast<size_t>(*begin), static_cast<size_t>(*count)), file};
}

}  // namespace weft::onnx
