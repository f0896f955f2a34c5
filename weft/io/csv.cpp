#include "weft/io/csv.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/names.h"

namespace weft {

namespace {

// Reads field by field; knows where it is for messages.
class FieldReader {
 public:
  FieldReader(std::string_view text, std::string_view what, char delimiter)
      : text_(text), what_(what), delimiter_(delimiter) {}

  bool done() const { return at_ == text_.size(); }
  size_t line() const { return line_; }

  // The next field; afterwards ended() says whether it was its record's last.
  std::string field() { return at_ < text_.size() && text_[at_] == '"' ? quoted() : plain(); }
  bool ended() const { return ended_; }

 private:
  std::string plain() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ && text_[at_] != '\n') {
      if (text_[at_] == '"') complain("a quote inside a field that does not begin with one");
      ++at_;
    }
    size_t end = at_;
    if (!at_delimiter() && end > begin && text_[end - 1] == '\r') --end;
    const std::string value(text_.substr(begin, end - begin));
    finish();
    return value;
  }

  std::string quoted() {
    const size_t opened = line_;
    std::string value;
    for (++at_;; ++at_) {
      if (at_ == text_.size()) {
        fail_runtime("csv.format", "{}: the quote opened in line {} is never closed", what_,
                     opened);
      }
      if (text_[at_] == '"') {
        if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      }
      if (text_[at_] == '\n') ++line_;
      value += text_[at_];
    }
    ++at_;
    if (at_ + 1 < text_.size() && text_[at_] == '\r' && text_[at_ + 1] == '\n') ++at_;
    if (at_ < text_.size() && !at_delimiter() && text_[at_] != '\n') {
      complain("text after a closing quote");
    }
    finish();
    return value;
  }

  bool at_delimiter() const { return at_ < text_.size() && text_[at_] == delimiter_; }

  // Steps over what ends a field.
  void finish() {
    ended_ = !at_delimiter();
    if (at_ < text_.size() && text_[at_] == '\n') ++line_;
    if (at_ < text_.size()) ++at_;
  }

  [[noreturn]] void complain(const char* wrong) const {
    fail_runtime("csv.format", "{}: line {}: {}", what_, line_, wrong);
  }

  std::string_view text_, what_;
  char delimiter_;
  size_t at_ = 0, line_ = 1;
  bool ended_ = false;
};

using Fields = std::vector<std::string>;

std::string_view trimmed(std::string_view field) {
  const size_t begin = field.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return field.substr(begin, field.find_last_not_of(" \t") - begin + 1);
}

template <class T>
bool parse_number(std::string_view field, T& value) {
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error == std::errc() && stop == field.data() + field.size();
}

bool parse_field(std::string_view field, int64_t& value) {
  return parse_number(trimmed(field), value);
}
bool parse_field(std::string_view field, double& value) {
  value = std::nan("");
  const std::string_view digits = trimmed(field);
  return digits.empty() || parse_number(digits, value);
}

template <class T>
HostArray array_of(DType dtype, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return HostArray::owned(dtype, {static_cast<int64_t>(values.size())}, std::move(bytes));
}

// Whether all fields are numbers of this type, which then are the column's.
template <class T>
bool make_numbers(CsvColumn& column, const Fields& fields, DType dtype) {
  std::vector<T> values(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!parse_field(fields[i], values[i])) return false;
  }
  column.values = array_of(dtype, values);
  return true;
}

void make_categories(CsvColumn& column, const Fields& fields) {
  std::unordered_map<std::string_view, int32_t> numbers;
  std::vector<int32_t> values;
  for (const std::string& field : fields) {
    const auto [found, is_new] = numbers.emplace(field, static_cast<int32_t>(numbers.size()));
    if (is_new) column.categories.push_back(field);
    values.push_back(found->second);
  }
  column.values = array_of(DType::I32, values);
}

CsvColumn column_of(std::string name, const Fields& fields) {
  CsvColumn column{std::move(name), {}, {}};
  if (make_numbers<int64_t>(column, fields, DType::I64)) return column;
  if (make_numbers<double>(column, fields, DType::F64)) return column;
  make_categories(column, fields);
  return column;
}

Fields record(FieldReader& reader) {
  Fields fields;
  do {
    fields.push_back(reader.field());
  } while (!reader.ended());
  return fields;
}

// Of the first record, or of numbers where it is data.
Fields names_of(const Fields& first, const CsvOptions& options, std::string_view what) {
  Fields names = first;
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!options.header) names[i] = std::to_string(i);
    if (const auto [at, is_new] = seen.emplace(names[i], i); !is_new) {
      fail_runtime("csv.names", "{}: columns {} and {} are both named {}", what, at->second, i,
                   quoted_name(names[i]));
    }
  }
  return names;
}

double as_double(const CsvColumn& column, size_t row) {
  const std::byte* at = column.values.bytes.data();
  const auto read = [&]<class T>(T value) {
    std::memcpy(&value, at + row * sizeof(T), sizeof(T));
    return static_cast<double>(value);
  };
  if (column.values.dtype == DType::F64) return read(double());
  return column.values.dtype == DType::I64 ? read(int64_t()) : read(int32_t());
}

}  // namespace

CsvTable parse_csv(std::string_view text, std::string_view what, const CsvOptions& options) {
  FieldReader reader(text, what, options.delimiter);
  if (reader.done()) fail_runtime("csv.format", "{}: there is nothing in it", what);
  const Fields first = record(reader);
  const Fields names = names_of(first, options, what);
  std::vector<Fields> columns(names.size());
  const auto append = [&](const Fields& fields) {
    for (size_t i = 0; i < fields.size(); ++i) columns[i].push_back(fields[i]);
  };
  if (!options.header) append(first);
  while (!reader.done()) {
    const size_t line = reader.line();
    const Fields fields = record(reader);
    if (fields.size() != names.size()) {
      fail_runtime("csv.format", "{}: the record of line {} has {} fields, the first has {}", what,
                   line, fields.size(), names.size());
    }
    append(fields);
  }
  CsvTable table;
  for (size_t i = 0; i < names.size(); ++i)
    table.columns.push_back(column_of(names[i], columns[i]));
  return table;
}

CsvTable read_csv(const std::string& path, const CsvOptions& options) {
  return parse_csv(MappedFile(path).text(), path, options);
}

const CsvColumn& CsvTable::operator[](std::string_view name) const {
  std::vector<std::string_view> known;
  for (const CsvColumn& column : columns) {
    if (column.name == name) return column;
    known.push_back(column.name);
  }
  fail("csv.column", "there is no column {}{}", quoted_name(name), did_you_mean(name, known));
}

HostArray CsvTable::matrix(const std::vector<std::string>& names) const {
  std::vector<const CsvColumn*> chosen;
  for (const std::string& name : names) chosen.push_back(&(*this)[name]);
  if (names.empty()) {
    for (const CsvColumn& column : columns) chosen.push_back(&column);
  }
  std::vector<float> values;
  for (size_t row = 0; row < static_cast<size_t>(rows()); ++row) {
    for (const CsvColumn* column : chosen) {
      values.push_back(static_cast<float>(as_double(*column, row)));
    }
  }
  HostArray array = array_of(DType::F32, values);
  array.shape = {rows(), static_cast<int64_t>(chosen.size())};
  return array;
}

}  // namespace weft
