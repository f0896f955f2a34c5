// fmt's implementation, compiled once here (see docs/design/decisions.md) and our wrappers.
#include "weft/base/format.h"

#include <fmt/format-inl.h>

#include <iterator>

FMT_BEGIN_NAMESPACE
namespace detail {
// The list of fmt 9's own src/format.cc, for char.
template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API locale_ref::locale_ref(const std::locale& loc);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view,
                                 basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
}  // namespace detail
FMT_END_NAMESPACE

namespace weft {

void append_vformat(std::string& out, fmt::string_view pattern, fmt::format_args args) {
  fmt::vformat_to(std::back_inserter(out), pattern, args);
}

std::string human_bytes(int64_t bytes) {
  if (bytes < 1024) return strformat("{} B", bytes);
  auto amount = static_cast<double>(bytes) / 1024;
  const char* unit = "KMGTPE";
  for (; amount >= 1024; amount /= 1024) ++unit;
  return strformat("{:.1f} {}iB", amount, *unit);
}

}  // namespace weft
