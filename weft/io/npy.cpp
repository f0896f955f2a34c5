#include "weft/io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/reader.h"

namespace weft {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLongestHeader = size_t{1} << 16;

struct DescrRow {
  std::string_view descr;  // without the byte order
  DType dtype;
};
constexpr DescrRow kDescrs[] = {
    {"b1", DType::Bool}, {"i1", DType::I8},  {"i2", DType::I16}, {"i4", DType::I32},
    {"i8", DType::I64},  {"u1", DType::U8},  {"u2", DType::U16}, {"u4", DType::U32},
    {"u8", DType::U64},  {"f2", DType::F16}, {"f4", DType::F32}, {"f8", DType::F64},
};

// The header is a Python dict literal. Only what NumPy itself writes for plain arrays is accepted:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class DictReader {
 public:
  DictReader(std::string_view text, size_t base, std::string_view what)
      : text_(text), base_(base), what_(what) {}

  void read(HostArray& array) {
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      expect(':');
      read_value(key, array);
      if (!take(',') && peek() != '}') wrong("expected ',' or '}'");
    }
    while (at_ < text_.size()) {
      if (text_[at_] != ' ' && text_[at_] != '\n') wrong("something after the dictionary");
      ++at_;
    }
    if (fields_ != 7) wrong("descr, fortran_order or shape is missing");
  }
  bool big_endian() const { return big_endian_; }
  bool columns_first() const { return columns_first_; }

 private:
  void read_value(std::string_view key, HostArray& array) {
    if (key == "descr") {
      once(1);
      array.dtype = read_dtype();
    } else if (key == "fortran_order") {
      once(2);
      read_order();
    } else if (key == "shape") {
      once(4);
      read_shape(array);
    } else {
      wrong("an unknown key");
    }
  }
  void once(unsigned bit) {
    if ((fields_ & bit) != 0) wrong("a key listed twice");
    fields_ |= bit;
  }

  DType read_dtype() {
    if (peek() != '\'' && peek() != '"') {
      wrong("a structured dtype; save each field as its own array");
    }
    const std::string_view text = string();
    for (const DescrRow& known : kDescrs) {
      const bool order = text.size() == 3 && std::string_view("<>|=").find(text[0]) != text.npos;
      if (!order || text.substr(1) != known.descr) continue;
      big_endian_ = text[0] == '>';
      return known.dtype;
    }
    wrong("a dtype that is not bool, an integer or a float; objects are never loaded");
  }
  void read_order() {
    columns_first_ = word("True");
    if (!columns_first_ && !word("False")) wrong("expected True or False");
  }
  void read_shape(HostArray& array) {
    expect('(');
    while (!take(')')) {
      array.shape.push_back(integer());
      if (array.shape.size() > 64) wrong("more than 64 dimensions");
      if (!take(',') && peek() != ')') wrong("expected ',' or ')'");
    }
  }

  int64_t integer() {
    peek();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) wrong("expected a dimension from 0 to 2^63 - 1");
    at_ += static_cast<size_t>(stop - begin);
    return value;
  }
  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') wrong("expected a string");
    const size_t start = ++at_, stop = text_.find(quote, start);
    if (stop == std::string_view::npos) wrong("a string without an end");
    at_ = stop + 1;
    return text_.substr(start, stop - start);
  }
  bool word(std::string_view wanted) {
    peek();
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ == text_.size()) wrong("the header ends too early");
    return text_[at_];
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) wrong("a malformed header");
  }
  [[noreturn]] void wrong(std::string_view problem) const {
    fail_runtime("npy.format", "{}: {} at offset {}", what_, problem, base_ + at_);
  }

  std::string_view text_;
  size_t base_;
  std::string_view what_;
  size_t at_ = 0;
  unsigned fields_ = 0;
  bool big_endian_ = false, columns_first_ = false;
};

// The elements in row-major order, where they lie with the first axis fastest (Fortran's order).
std::vector<std::byte> rows_first(const HostArray& array, size_t size) {
  std::vector<std::byte> out(array.bytes.size());
  std::vector<int64_t> index(array.shape.size(), 0), strides(array.shape.size());
  int64_t step = 1, from = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    strides[axis] = step;
    step *= array.shape[axis];
  }
  for (size_t at = 0; at < out.size(); at += size) {
    std::memcpy(out.data() + at, array.bytes.data() + static_cast<size_t>(from) * size, size);
    for (size_t axis = index.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < array.shape[axis]) break;
      from -= strides[axis] * array.shape[axis];
      index[axis] = 0;
    }
  }
  return out;
}

// As weft has arrays: a view where the file has them so.
HostArray in_order(HostArray array, bool columns_first, bool big_endian) {
  const auto size = static_cast<size_t>(bits(array.dtype) / 8);
  const bool turned = columns_first && array.shape.size() > 1;
  const bool swapped = big_endian && size > 1;
  if (!turned && !swapped) return array;
  std::vector<std::byte> bytes =
      turned ? rows_first(array, size)
             : std::vector<std::byte>(array.bytes.begin(), array.bytes.end());
  for (size_t at = 0; swapped && at < bytes.size(); at += size)
    std::reverse(bytes.data() + at, bytes.data() + at + size);
  return HostArray::owned(array.dtype, std::move(array.shape), std::move(bytes));
}

std::string_view read_prologue(ByteReader& reader, std::string_view what) {
  if (reader.remaining() < kMagic.size() || reader.text(kMagic.size()) != kMagic) {
    fail_runtime("npy.format", "{}: does not begin with \\x93NUMPY, so it is not an .npy file",
                 what);
  }
  const uint8_t major = reader.u8(), minor = reader.u8();
  if (major < 1 || major > 3 || minor != 0) {
    fail_runtime("npy.format", "{}: format version {}.{} at offset 6; 1.0, 2.0 and 3.0 are known",
                 what, major, minor);
  }
  const uint64_t size = major == 1 ? reader.u16() : reader.u32();
  if (size > kLongestHeader) {
    fail_runtime("npy.format", "{}: promises a header of {} bytes; plain arrays need less than {}",
                 what, size, kLongestHeader);
  }
  return reader.text(size);
}

std::string_view descr_of(DType dtype) {
  for (const DescrRow& known : kDescrs) {
    if (known.dtype == dtype) return known.descr;
  }
  fail_type("save_npy.dtype", "NumPy has no {}; cast the tensor to f32 first", name(dtype));
}

}  // namespace

HostArray parse_npy(std::span<const std::byte> data, std::string_view what,
                    std::shared_ptr<const void> owner) {
  ByteReader reader(data, what);
  const std::string_view header = read_prologue(reader, what);
  HostArray array;
  DictReader dict(header, reader.offset() - header.size(), what);
  dict.read(array);
  const std::optional<int64_t> bytes = checked_bytes(array.dtype, array.shape);
  if (!bytes || static_cast<uint64_t>(*bytes) != reader.remaining()) {
    fail_runtime("npy.length",
                 "{}: a shape of {} {} takes {} bytes from offset {}, but {} are there; "
                 "the file is cut short or damaged",
                 what, shape_text(array.shape), name(array.dtype),
                 bytes ? std::to_string(*bytes) : "more than 2^63", reader.offset(),
                 reader.remaining());
  }
  array.bytes = reader.bytes(reader.remaining());
  array.owner = std::move(owner);
  return in_order(std::move(array), dict.columns_first(), dict.big_endian());
}

HostArray read_npy(const std::string& path) {
  auto file = MappedFile::open(path);
  return parse_npy(file->bytes(), path, file);
}

std::string npy_header(const HostArray& array) {
  std::string header =
      strformat("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}",
                bits(array.dtype) == 8 ? '|' : '<', descr_of(array.dtype), shape_text(array.shape));
  const size_t prologue = kMagic.size() + 4;
  header.append(63 - (prologue + header.size()) % 64, ' ');  // the newline makes it whole
  header += '\n';
  const auto size = static_cast<uint16_t>(header.size());
  std::string all(kMagic);
  all += std::string_view("\x01\x00", 2);
  all.append(reinterpret_cast<const char*>(&size), sizeof(size));
  return all + header;
}

void save_npy(const std::string& path, const HostArray& array) {
  const std::string header = npy_header(array);
  atomic_write_file(path, [&](FileWriter& out) {
    out.write(header);
    out.write(array.bytes);
  });
}

}  // namespace weft
