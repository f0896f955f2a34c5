// Models in several files: name-00001-of-00003.gguf and so on, as llama.cpp's gguf-split writes
// them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/gguf.h"
#include "weft/io/host_array.h"

namespace weft {

namespace {

constexpr std::string_view kSuffix =
    "-00001-of-";  // of the first part's name, then 5 digits and .gguf

/// What comes before the numbers in the first part's path; nothing where it is not named so.
std::string stem_of(const std::string& path, int64_t count) {
  const std::string end = strformat("{}{:05}.gguf", kSuffix, count);
  return path.ends_with(end) ? path.substr(0, path.size() - end.size()) : "";
}

std::string real_directory(const std::string& path) {
  check_path(path);
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) fail_errno("file.missing", "cannot open " + path, errno);
  const std::string text = real;
  std::free(real);
  return text.substr(0, text.rfind('/'));
}

GgufContent read_one(const std::string& path) {
  auto file = MappedFile::open(path);
  return parse_gguf(file->bytes(), path, file);
}

int64_t number_of(const GgufContent& part, const char* key, int64_t otherwise) {
  const GgufValue* value = part.value(key);
  return value == nullptr ? otherwise : value->integer().value_or(-1);
}

void take_part(GgufContent& model, GgufContent part, const std::string& path, int64_t number,
               int64_t count) {
  const int64_t own = number_of(part, "split.no", -1), all = number_of(part, "split.count", -1);
  if (own != number || all != count) {
    fail_runtime("gguf.split",
                 "{}: says it is part {} of {}, and part {} of {} is wanted; the files do "
                 "not belong together",
                 path, own + 1, all, number + 1, count);
  }
  for (GgufTensor& tensor : part.tensors) model.tensors.push_back(std::move(tensor));
}

void check_whole(const GgufContent& model, const std::string& path) {
  const auto found = static_cast<int64_t>(model.tensors.size());
  const int64_t promised = number_of(model, "split.tensors.count", found);
  if (promised != found) {
    fail_runtime("gguf.split",
                 "{}: promises {} tensors in its parts, which have {}; the files do not "
                 "belong together",
                 path, promised, found);
  }
  std::unordered_set<std::string_view> names;
  for (const GgufTensor& tensor : model.tensors) {
    if (names.insert(tensor.name).second) continue;
    fail_runtime("gguf.split", "{}: {} is in two parts; the files do not belong together", path,
                 quoted_name(tensor.name));
  }
}

}  // namespace

bool is_gguf(const std::string& path) {
  check_path(path);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return false;  // a pipe would wait for a writer
  char start[4] = {};
  std::ifstream(path, std::ios::binary).read(start, sizeof(start));
  return std::string_view(start, sizeof(start)) == "GGUF";
}

GgufContent read_gguf(const std::string& path) {
  GgufContent model = read_one(path);
  const int64_t count = number_of(model, "split.count", 1);
  if (count <= 1 && count >= 0) return model;
  const std::string stem = stem_of(path, count);
  if (count < 0 || count > 99999 || stem.empty() || number_of(model, "split.no", -1) != 0) {
    fail_runtime("gguf.split",
                 "{}: is one of {} parts; name the first, whose name must end in {}{:05}.gguf",
                 path, count, kSuffix, count);
  }
  const std::string directory = real_directory(path);
  for (int64_t i = 1; i < count; ++i) {
    const std::string part = strformat("{}-{:05}-of-{:05}.gguf", stem, i + 1, count);
    if (const std::string there = real_directory(part); there != directory) {
      fail_runtime("gguf.split",
                   "{}: is a link into {}, and the first part lies in {}; put them into "
                   "one directory",
                   part, there, directory);
    }
    take_part(model, read_one(part), part, i, count);
  }
  check_whole(model, path);
  return model;
}

}  // namespace weft
