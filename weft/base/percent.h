// Percent-encoding of URIs (RFC 3986, 2.1).
#pragma once

#include <string>
#include <string_view>

namespace weft {

/// "a%20b" as "a b". A '%' without two digits behind it stays.
std::string percent_decoded(std::string_view text);

}  // namespace weft
