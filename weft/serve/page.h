// The chat page: the files of page/.
#pragma once

#include <span>

#include "weft/http/page.h"

namespace weft::serve {

/// Made by cmake/embed.cmake.
std::span<const http::EmbeddedFile> page_files();

}  // namespace weft::serve
