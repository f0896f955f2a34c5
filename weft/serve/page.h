// The chat page: files of page/, which are in the binary.
#pragma once

#include <cstddef>
#include <string_view>

#include "weft/serve/http.h"

namespace weft::serve {

struct PageFile {
  std::string_view path, content_type, content;
};

/// As cmake/embed.cmake writes them.
struct EmbeddedFile {
  const char* name;
  const unsigned char* bytes;
  size_t size;
};
extern const EmbeddedFile kEmbeddedFiles[];
extern const size_t kEmbeddedFileCount;

/// At this path; nullptr: none. Paths are compared, never looked up on a disk.
const PageFile* find_page_file(std::string_view path);
/// What keeps the page to itself: no script, style or connection but its own.
HttpFields page_fields();

}  // namespace weft::serve
