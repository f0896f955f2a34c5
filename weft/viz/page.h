// The page of `weft viz`: the files of page/.
#pragma once

#include <span>

#include "weft/http/page.h"

namespace weft::viz {

/// Made by cmake/embed.cmake.
std::span<const http::EmbeddedFile> page_files();

}  // namespace weft::viz
