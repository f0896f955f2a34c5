#include "weft/viz/view_parts.h"

#include <algorithm>

#include "weft/base/format.h"

namespace weft::viz {

Page page_of(const Parameters& parameters, size_t total, int64_t count) {
  const auto first =
      std::min(static_cast<uint64_t>(parameters.number("first", 0)), static_cast<uint64_t>(total));
  const auto rows = static_cast<uint64_t>(parameters.number("count", count));
  return {static_cast<size_t>(first),
          static_cast<size_t>(first + std::min<uint64_t>(rows, total - first))};
}

uint32_t wanted_process(const Session::Data& data, const Parameters& parameters) {
  if (!parameters.has("process")) return kNone;
  return static_cast<uint32_t>(parameters.position("process", data.processes.size(), "processes"));
}

std::string styled(bool colour, const char* code, std::string_view text) {
  return colour ? strformat("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
      append_format(out, "\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

std::string duration_text(double ns) {
  if (ns < 1e3) return strformat("{:.0f} ns", ns);
  if (ns < 1e6) return strformat("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return strformat("{:.2f} ms", ns / 1e6);
  return strformat("{:.2f} s", ns / 1e9);
}

std::string bytes_text(double bytes) {
  if (bytes < 1e3) return strformat("{:.0f} B", bytes);
  if (bytes < 1e6) return strformat("{:.1f} KB", bytes / 1e3);
  if (bytes < 1e9) return strformat("{:.1f} MB", bytes / 1e6);
  return strformat("{:.2f} GB", bytes / 1e9);
}

}  // namespace weft::viz
