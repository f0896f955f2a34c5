// Where the checkout is, for tests that read its files (golden cases, tables, docs), and where it
// is built, for what they write.
#pragma once

namespace weft {
const char* source_dir();
const char* build_dir();
}  // namespace weft
