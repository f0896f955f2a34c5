// Pages: files of a room's page/, which are in the binary.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "weft/http/http.h"

namespace weft::http {

struct PageFile {
  std::string_view path, content_type, content;
};

/// As cmake/embed.cmake writes them.
struct EmbeddedFile {
  const char* name;
  const unsigned char* bytes;
  size_t size;
};

/// The file at this path, "/" for index.html. Paths are compared, never looked up on a disk.
std::optional<PageFile> find_page_file(std::span<const EmbeddedFile> files, std::string_view path);
/// What keeps the page to itself: no script, style or connection but its own.
HttpFields page_fields();

}  // namespace weft::http
