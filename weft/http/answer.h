// What answers look like on the wire.
#pragma once

#include <string>
#include <string_view>

#include "weft/http/http.h"

namespace weft::http {

/// The status line and fields, those of every answer included; `length` < 0: it has no length.
std::string answer_head(int status, std::string_view content_type, const HttpFields& fields,
                        int64_t length, bool keep_alive);
std::string chunk(std::string_view bytes);
/// One server-sent event (HTML Living Standard, 9.2): JSON, which has no line breaks. `name` may be
/// empty.
std::string event_text(std::string_view data, std::string_view name);

}  // namespace weft::http
