#include <array>
#include <bit>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/utf8.h"
#include "weft/io/pt.h"
#include "weft/io/pt_types.h"
#include "weft/io/zip.h"

namespace weft {

namespace {

const PtType& type_of(DType dtype) {
  for (const PtType& type : kPtTypes)
    if (type.dtype == dtype) return type;
  fail_type("save_pt.dtype", "PyTorch has no {}; cast the tensor first", name(dtype));
}

/// A pickle of protocol 2 (Lib/pickletools.py).
class PickleWriter {
 public:
  PickleWriter& code(std::string_view opcodes) {
    text_ += opcodes;
    return *this;
  }
  PickleWriter& text(std::string_view value) {
    text_ += 'X';
    number(value.size(), 4);
    text_ += value;
    return *this;
  }
  PickleWriter& integer(int64_t value) {
    text_ += "\x8a\x08";
    number(std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  PickleWriter& integers(std::span<const int64_t> values) {
    text_ += '(';
    for (const int64_t value : values) integer(value);
    text_ += 't';
    return *this;
  }
  PickleWriter& name(std::string_view module, std::string_view of) {
    text_ += strformat("c{}\n{}\n", module, of);
    return *this;
  }
  std::string_view result() const { return text_; }

 private:
  void number(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(value >> 8 * i);
  }
  std::string text_;
};

std::vector<int64_t> row_major(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(1, shape[i]);
  }
  return strides;
}

// As torch/_tensor.py, __reduce_ex__, has it.
void put_tensor(PickleWriter& out, const HostArray& array, size_t key) {
  const PtType& type = type_of(array.dtype);
  const bool untyped = type.storage.empty();
  out.name("torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2").code("((");
  out.text("storage").name(untyped ? "torch.storage" : "torch",
                           untyped ? "UntypedStorage" : type.storage);
  const auto count = static_cast<int64_t>(array.bytes.size());
  out.text(std::to_string(key)).text("cpu").integer(untyped ? count : array.numel());
  out.code("tQ").integer(0).integers(array.shape).integers(row_major(array.shape));
  out.code("\x89").name("collections", "OrderedDict").code(")R");  // no gradient, no hooks
  if (untyped) out.name("torch", type.name);
  out.code("tR");
}

void check_names(std::span<const NamedArray> arrays) {
  std::unordered_set<std::string_view> names;
  for (const NamedArray& named : arrays) {
    if (!names.insert(named.name).second)
      fail("save_pt.name", "two tensors are named {}", quoted_name(named.name));
    if (!is_utf8(named.name))
      fail("save_pt.name", "{} is not UTF-8, as names must be", quoted_name(named.name));
    type_of(named.array.dtype);
  }
}

std::string pickle_of(std::span<const NamedArray> arrays) {
  PickleWriter out;
  out.code("\x80\x02}(");
  for (size_t i = 0; i < arrays.size(); ++i) {
    out.text(arrays[i].name);
    put_tensor(out, arrays[i].array, i);
  }
  out.code("u.");
  return std::string(out.result());
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

void save_pt(const std::string& path, const std::vector<NamedArray>& arrays) {
  check_names(arrays);
  const std::string pickle = pickle_of(arrays);
  atomic_write_file(path, [&](FileWriter& out) {
    ZipWriter zip(out);
    zip.add("archive/data.pkl", bytes_of(pickle));
    zip.add("archive/byteorder", bytes_of("little"));
    for (size_t i = 0; i < arrays.size(); ++i)
      zip.add(strformat("archive/data/{}", i), arrays[i].array.bytes);
    zip.add("archive/version", bytes_of("3\n"));
    zip.finish();
  });
}

}  // namespace weft
