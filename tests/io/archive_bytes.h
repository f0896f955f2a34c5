// Zip and tar archives made by hand, right or wrong.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/io/scratch_dir.h"
#include "weft/io/gzip.h"

namespace weft {

inline std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

/// A stored member; every field can be made to lie.
struct ZipPart {
  std::string name, content;
  std::string local_name = {};  // empty: name
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;  // 0: the right one
  uint64_t bytes = UINT64_MAX, packed = UINT64_MAX;
  std::string extra = {}, descriptor = {};
  uint32_t attributes = 0, at = UINT32_MAX;
};

inline std::string zip_fields(const ZipPart& p) {
  const uint32_t crc = p.crc != 0 ? p.crc : crc32_of(as_bytes(p.content));
  const uint64_t packed = p.packed == UINT64_MAX ? p.content.size() : p.packed;
  return little(p.flags, 2) + little(p.method, 2) + little(0x210000, 4) + little(crc, 4) +
         little(packed, 4) + little(p.bytes == UINT64_MAX ? p.content.size() : p.bytes, 4);
}

inline std::string zip_end(uint64_t count, uint64_t size, uint64_t at,
                           std::string_view comment = "") {
  return "PK\x05\x06" + little(0, 4) + little(count, 2) + little(count, 2) + little(size, 4) +
         little(at, 4) + little(comment.size(), 2) + std::string(comment);
}

inline std::string zip_of(const std::vector<ZipPart>& parts) {
  std::string file, directory;
  for (const ZipPart& p : parts) {
    const std::string& local = p.local_name.empty() ? p.name : p.local_name;
    const uint64_t at = p.at == UINT32_MAX ? file.size() : p.at;
    file += "PK\x03\x04" + little(20, 2) + zip_fields(p) + little(local.size(), 2) + little(0, 2) +
            local + p.content + p.descriptor;
    directory += "PK\x01\x02" + little(0x0314, 2) + little(20, 2) + zip_fields(p) +
                 little(p.name.size(), 2) + little(p.extra.size(), 2) + little(0, 2) +
                 little(0, 4) + little(p.attributes, 4) + little(at, 4) + p.name + p.extra;
  }
  const uint64_t begin = file.size();
  return file + directory + zip_end(parts.size(), directory.size(), begin);
}

struct TarPart {
  std::string name, content;
  char type = '0';
  std::string size = {};  // empty: the right one, octal
  std::string link = {};
};

inline std::string tar_header(const TarPart& p) {
  std::string header(512, '\0');
  char size[13];
  std::snprintf(size, sizeof(size), "%011zo", p.content.size());
  header.replace(0, p.name.size(), p.name);
  header.replace(100, 7, "0000644");
  const std::string digits = p.size.empty() ? std::string(size) : p.size;
  header.replace(124, digits.size(), digits);
  header[156] = p.type;
  header.replace(157, p.link.size(), p.link);
  header.replace(257, 8, std::string("ustar\00000", 8));
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char checksum[8];
  std::snprintf(checksum, sizeof(checksum), "%06o", sum);
  header.replace(148, 7, std::string(checksum, 7));
  return header;
}

inline std::string tar_of(const std::vector<TarPart>& parts) {
  std::string file;
  for (const TarPart& p : parts)
    file += tar_header(p) + p.content + std::string((512 - p.content.size() % 512) % 512, '\0');
  return file + std::string(1024, '\0');
}

/// "27 path=some/name\n".
inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

}  // namespace weft
