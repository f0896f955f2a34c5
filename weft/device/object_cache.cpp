#include "weft/device/object_cache.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/base/log.h"
#include "weft/base/reader.h"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMagic = 0x31304a424f544657;  // "WFTOBJ01"

uint64_t content_hash(ObjectKey key, std::string_view object) {
  return hash_text(object, hash_combine(key.a, key.b));
}

std::string header(ObjectKey key, std::string_view object) {
  const uint64_t words[] = {kMagic, key.a, key.b, content_hash(key, object), object.size()};
  return std::string(reinterpret_cast<const char*>(words), sizeof(words));
}

constexpr uintmax_t kMostBytes = uintmax_t{256} << 20;
constexpr uint64_t kStoresBetweenLooks = 8;  // about

/// Takes the files written first away where all of them take too much room.
void prune(const std::string& folder) {
  struct File {
    fs::file_time_type written;
    uintmax_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::error_code error;
  uintmax_t sum = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const File file{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    files.push_back(file);
    sum += file.bytes;
  }
  if (sum <= kMostBytes) return;
  std::ranges::sort(files, {}, &File::written);
  for (const File& file : files) {
    if (sum <= kMostBytes / 2) break;
    fs::remove(file.path, error);
    sum -= file.bytes;
  }
}

}  // namespace

ObjectKey ObjectKey::of(std::string_view text, std::string_view flags, std::string_view compiler) {
  ObjectKey key{1, 2};
  for (uint64_t* h : {&key.a, &key.b}) {
    for (std::string_view part : {text, flags, compiler})
      *h = hash_combine(hash_text(part, *h), part.size());
  }
  return key;
}

ObjectCache::ObjectCache(Context& context) : context_(context) {
  if (!context.options().cache) return;
  try {
    folder_ = make_cache_dir(context.options(), "objects");
  } catch (const Error& error) {
    log_at(context, 1, "no kernel cache: {}", error.what());
  }
}

std::string ObjectCache::path(ObjectKey key) const {
  return strformat("{}/{:016x}{:016x}.o", folder_, key.a, key.b);
}

std::optional<std::string> ObjectCache::find(ObjectKey key) const {
  if (folder_.empty() || !file_exists(path(key))) return std::nullopt;
  try {
    const MappedFile file(path(key));
    ByteReader reader(file.bytes(), file.path());
    std::string_view expected = reader.text(5 * sizeof(uint64_t));
    std::string_view object = reader.text(reader.remaining());
    if (header(key, object) != expected) return std::nullopt;
    context_.tracer().add(Counter::CacheHits);
    return std::string(object);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void ObjectCache::store(ObjectKey key, std::string_view object) const {
  if (folder_.empty()) return;
  try {
    const auto write = [&](FileWriter& out) {
      out.write(header(key, object));
      out.write(object);
    };
    atomic_write_file(path(key), write, Keep::Checked);
    if (key.a % kStoresBetweenLooks == 0) prune(folder_);
  } catch (const Error& error) {
    log_at(context_, 1, "a compiled kernel was not cached: {}", error.what());
  }
}

}  // namespace weft
