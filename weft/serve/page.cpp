#include "weft/serve/page.h"

#include <vector>

namespace weft::serve {

namespace {

struct TypeRow {
  std::string_view ending, type;
};

constexpr TypeRow kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

std::string_view type_of(std::string_view name) {
  for (const TypeRow& row : kTypes)
    if (name.ends_with(row.ending)) return row.type;
  return "application/octet-stream";
}

std::vector<PageFile> page_files() {
  std::vector<PageFile> files;
  for (size_t i = 0; i < kEmbeddedFileCount; ++i) {
    const EmbeddedFile& file = kEmbeddedFiles[i];
    const std::string_view name = file.name;
    files.push_back({name, type_of(name), {reinterpret_cast<const char*>(file.bytes), file.size}});
  }
  return files;
}

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  static const std::vector<PageFile> kFiles = page_files();
  if (path == "/") path = "/index.html";
  for (const PageFile& file : kFiles)
    if (path.substr(1) == file.path) return &file;
  return nullptr;
}

HttpFields page_fields() {
  return {{"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
           "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
           "require-trusted-types-for 'script'"},
          {"X-Frame-Options", "DENY"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Permissions-Policy", "camera=(), microphone=(), geolocation=()"}};
}

}  // namespace weft::serve
