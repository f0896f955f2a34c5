#include "weft/http/answer.h"

#include "weft/base/format.h"

namespace weft::http {

std::string answer_head(int status, std::string_view content_type, const HttpFields& fields,
                        int64_t length, bool keep_alive) {
  std::string head = strformat("HTTP/1.1 {} {}\r\n", status, status_text(status));
  const auto add = [&](std::string_view name, std::string_view value) {
    append_format(head, "{}: {}\r\n", name, value);
  };
  if (!content_type.empty()) add("Content-Type", content_type);
  if (length >= 0) add("Content-Length", std::to_string(length));
  add("Connection", keep_alive ? "keep-alive" : "close");
  add("Cache-Control", "no-store");
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  for (const auto& [name, value] : fields) add(name, value);
  return head + "\r\n";
}

std::string chunk(std::string_view bytes) {
  std::string text = strformat("{:x}\r\n", bytes.size());
  return text.append(bytes).append("\r\n");
}

std::string event_text(std::string_view data, std::string_view name) {
  const std::string first = name.empty() ? "" : strformat("event: {}\n", name);
  return first + std::string("data: ").append(data).append("\n\n");
}

}  // namespace weft::http
