#include "weft/http/page.h"

namespace weft::http {

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

}  // namespace

std::optional<PageFile> find_page_file(std::span<const EmbeddedFile> files, std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  if (path == "/") path = "/index.html";
  for (const EmbeddedFile& file : files) {
    const std::string_view name = file.name;
    if (path.substr(1) == name)
      return PageFile{name, type_of(name), {reinterpret_cast<const char*>(file.bytes), file.size}};
  }
  return std::nullopt;
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

}  // namespace weft::http
