// Zip archives, read strictly and never written to disk: what the directory says of a member and
// what stands before its data must agree, and members must fill the file without hole or overlap.
// The format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT (6.3.10)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/file.h"
#include "weft/io/archive.h"

namespace weft {

struct ZipMember {
  std::string name;
  std::span<const std::byte> packed;  ///< in the file
  uint64_t bytes = 0;                 ///< of its content
  uint32_t crc = 0;
  bool stored = true;  ///< else deflated
  bool is_folder() const { return name.ends_with('/'); }
};

bool is_zip(std::span<const std::byte> data);

/// The members as the directory lists them, none unpacked. Stored and deflated ones, zip64, data
/// descriptors; everything else is an Error: encryption, several disks, bytes before the first
/// member or after the end, two members of a name, names that lead elsewhere.
std::vector<ZipMember> parse_zip(std::span<const std::byte> data, std::string_view what,
                                 const UnpackLimits& limits = {});

/// Some writers of stored members leave the checksum out (PyTorch, on request) and write 0.
enum class Checksum : uint8_t { Required, MayBeZero };
/// The content, checked against its checksum: a view of a stored member (which `owner` keeps
/// alive), or unpacked.
HostArray zip_content(const ZipMember& member, std::string_view what,
                      std::shared_ptr<const void> owner, Checksum checksum = Checksum::Required);

/// All members but folders as bytes (u8) by name; those that are stored are views of the file.
std::vector<NamedArray> read_zip(const std::string& path, const UnpackLimits& limits = {});
std::vector<NamedArray> unzip(std::span<const std::byte> data, std::string_view what,
                              std::shared_ptr<const void> owner = nullptr,
                              const UnpackLimits& limits = {});

/// Writes stored members one after the other; begins their data at multiples of `alignment`.
class ZipWriter {
 public:
  explicit ZipWriter(FileWriter& out, uint64_t alignment = 64) : out_(out), alignment_(alignment) {}
  /// `before` and `content`, one after the other.
  void add(std::string_view name, std::span<const std::byte> before,
           std::span<const std::byte> content);
  void add(std::string_view name, std::span<const std::byte> content) { add(name, {}, content); }
  /// The directory. Nothing comes after it.
  void finish();

 private:
  struct Written {
    std::string name;
    uint64_t bytes, at;
    uint32_t crc;
  };
  FileWriter& out_;
  uint64_t alignment_;
  std::vector<Written> written_;
};

}  // namespace weft
