#include "weft/io/inflated_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/base/log.h"
#include "weft/io/gzip.h"

namespace weft {

namespace {

// Follows the content in a cached file. At the end, so that the content keeps the file's alignment.
struct Seal {
  char magic[8];
  uint64_t source;   // identity of the source
  uint64_t size;     // of the content
  uint64_t content;  // hash of the content
};
constexpr char kMagic[8] = {'w', 'e', 'f', 't', 'i', 'n', 'f', '1'};

uint64_t identity_of(const MappedFile& source) {
  struct stat info;
  if (::stat(source.path().c_str(), &info) != 0) return 0;
  const GzipTrailer trailer = gzip_trailer(source.bytes(), source.path());
  uint64_t id = hash_combine(static_cast<uint64_t>(info.st_size), trailer.crc32);
  id = hash_combine(id, static_cast<uint64_t>(info.st_mtim.tv_sec));
  id = hash_combine(id, static_cast<uint64_t>(info.st_mtim.tv_nsec));
  return hash_combine(id, trailer.size_mod_2_32);
}

std::string absolute_path(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string absolute = real;
  std::free(real);
  return absolute;
}

// Only what this user wrote and nobody else can change.
bool trusted(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<InflatedCopy> find_copy(const std::string& cached, uint64_t source) {
  if (!trusted(cached)) return std::nullopt;
  auto file = MappedFile::open(cached);
  const std::span<const std::byte> all = file->bytes();
  Seal seal;
  if (all.size() < sizeof(seal)) return std::nullopt;
  const std::span<const std::byte> content = all.first(all.size() - sizeof(seal));
  std::memcpy(&seal, all.last(sizeof(seal)).data(), sizeof(seal));
  const bool intact = std::memcmp(seal.magic, kMagic, sizeof(kMagic)) == 0 &&
                      seal.source == source && seal.size == content.size() &&
                      seal.content == hash_bytes(content.data(), content.size());
  if (!intact) return std::nullopt;
  return InflatedCopy{content, std::move(file)};
}

void keep_copy(const std::string& cached, uint64_t source, std::span<const std::byte> content) {
  Seal seal{{}, source, content.size(), hash_bytes(content.data(), content.size())};
  std::memcpy(seal.magic, kMagic, sizeof(kMagic));
  const auto write = [&](FileWriter& out) {
    out.write(content);
    out.write(std::as_bytes(std::span(&seal, 1)));
  };
  atomic_write_file(cached, write, Keep::Checked);
  ::chmod(cached.c_str(), 0600);
}

// Empty when there is no place for caches.
std::string cached_path(const MappedFile& source, Context& context) {
  const std::string dir = make_cache_dir(context.options(), "inflated");
  if (dir.empty()) return "";
  return strformat("{}/{:016x}", dir, hash_text(absolute_path(source.path())));
}

// An Error about the cache is logged and forgotten: the content can always be inflated again.
template <class F>
auto or_log(Context& context, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const Error& error) {
    log_at(context, 1, "cache not used: {}", error.what());
    return {};
  }
}

}  // namespace

InflatedCopy inflated_copy(
    const MappedFile& source, Context& context,
    FunctionRef<std::vector<std::byte>(std::span<const std::byte>, std::string_view)> inflate) {
  const uint64_t identity = identity_of(source);
  const bool allowed = context.options().cache && identity != 0;
  const std::string cached =
      allowed ? or_log(context, [&] { return cached_path(source, context); }) : "";
  if (!cached.empty()) {
    auto copy = or_log(context, [&] { return find_copy(cached, identity); });
    if (copy) return *copy;
  }
  auto content =
      std::make_shared<const std::vector<std::byte>>(inflate(source.bytes(), source.path()));
  if (!cached.empty()) {
    or_log(context, [&] {
      keep_copy(cached, identity, *content);
      return true;
    });
  }
  return {{content->data(), content->size()}, content};
}

}  // namespace weft
