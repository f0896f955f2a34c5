#include "weft/http/http.h"

#include <algorithm>

namespace weft::http {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

struct StatusRow {
  int status;
  std::string_view text;
};

constexpr StatusRow kStatuses[] = {
    {200, "OK"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {421, "Misdirected Request"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view HttpRequest::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

std::string_view HttpRequest::query() const {
  const size_t mark = target.find('?');
  return mark == std::string::npos ? "" : std::string_view(target).substr(mark + 1);
}

std::string_view HttpRequest::field(std::string_view name) const {
  for (const auto& [known, value] : fields)
    if (equal_ignoring_case(known, name)) return value;
  return "";
}

size_t HttpRequest::count(std::string_view name) const {
  return static_cast<size_t>(std::count_if(fields.begin(), fields.end(), [&](const auto& field) {
    return equal_ignoring_case(field.first, name);
  }));
}

std::string_view status_text(int status) {
  for (const StatusRow& row : kStatuses)
    if (row.status == status) return row.text;
  return "Unknown";
}

}  // namespace weft::http
