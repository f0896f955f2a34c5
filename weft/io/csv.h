// CSV: tables as text, column by column as numbers or categories.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/io/host_array.h"

namespace weft {

struct CsvOptions {
  char delimiter = ',';
  bool header = true;  // the first record names the columns; else they are "0", "1", ...
};

// i64 (rows,) where every field is an integer; f64 (rows,) where it is a number or empty (NaN);
// else i32 (rows,), each field's place in `categories`, which are in order of appearance.
struct CsvColumn {
  std::string name;
  HostArray values;
  std::vector<std::string> categories;
};

struct CsvTable {
  std::vector<CsvColumn> columns;

  int64_t rows() const { return columns.empty() ? 0 : columns[0].values.shape[0]; }
  // An Error that lists near misses where there is none.
  const CsvColumn& operator[](std::string_view name) const;
  // f32 (rows, names.size()), categories as their numbers. All columns where none is named.
  HostArray matrix(const std::vector<std::string>& names = {}) const;
};

// RFC 4180: fields may be "quoted, with "" for a quote"; records end with LF or CRLF, the last one
// need not. Spaces around numbers do not count. Every record has as many fields as the first, and
// no name occurs twice.
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});
CsvTable parse_csv(std::string_view text, std::string_view what, const CsvOptions& options = {});

}  // namespace weft
