// Where the checkout is, for tests that read its files (golden cases, tables, docs).
#pragma once

namespace weft {
const char* source_dir();
}  // namespace weft
