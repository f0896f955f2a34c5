// GGUF files and packed weights.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/io/gguf_model.h"
#include "weft/io/quantise.h"
#include "weft/io/tensors.h"
#include "weft/python/bindings.h"
#include "weft/python/host_view.h"
#include "weft/tensor/packed.h"

namespace weft::python {

namespace {

/// Bytes that are not UTF-8 become lone surrogates, so that they can be written again.
nb::object python_text(std::string_view text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}
std::string text_of(nb::handle text) {
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

nb::object number_at(const GgufValue& value, uint64_t i) {
  const GgufType type = value.type == GgufType::Array ? value.element : value.type;
  if (type == GgufType::Bool) return nb::cast(*value.integer(i) != 0);
  if (const auto whole = value.integer(i)) return nb::cast(*whole);
  if (type != GgufType::U64) return nb::cast(*value.number(i));
  uint64_t large;
  std::memcpy(&large, value.bytes.data() + i * sizeof(large), sizeof(large));
  return nb::cast(large);
}

// As deep as files are read, which is not deep.
nb::object python_value(const GgufValue& value) {
  if (value.type == GgufType::String) return python_text(value.text());
  if (value.type != GgufType::Array) return number_at(value, 0);
  nb::list all;
  for (uint64_t i = 0; i < value.count; ++i) {
    if (value.element == GgufType::String)
      all.append(python_text(value.texts[i]));
    else if (value.element == GgufType::Array)
      all.append(python_value(value.values[i]));
    else
      all.append(number_at(value, i));
  }
  return all;
}

/// (metadata, {name: (packed, codec, shape)}).
nb::tuple python_model(const GgufModel& model) {
  nb::dict metadata, tensors;
  for (const auto& [key, value] : model.content.metadata)
    metadata[python_text(key)] = python_value(value);
  for (const PackedTensor& t : model.tensors) {
    const std::string_view codec = name(t.codec);
    tensors[python_text(t.name)] = nb::make_tuple(t.packed, nb::str(codec.data(), codec.size()),
                                                  nb::steal(from_dims(t.shape)));
  }
  return nb::make_tuple(metadata, tensors);
}

nb::tuple load(const std::string& path) { return python_model(load_gguf(path)); }

nb::tuple parse(const Tensor& bytes, const std::string& what) {
  if (bytes.ndim() != 1 || bytes.dtype() != DType::U8)
    fail("gguf", "{}: a 1-D uint8 Tensor can be read as a file, not {} of shape {}", what,
         name(bytes.dtype()), bytes.dims().text());
  const std::shared_ptr<HostView> view = host_view(bytes);
  const std::span data(static_cast<const std::byte*>(view->data),
                       static_cast<size_t>(view->numel()));
  return python_model(gguf_model(parse_gguf(data, what, view)));
}

Codec codec_named(const std::string& text) {
  if (const std::optional<Codec> codec = codec_from_name(text)) return *codec;
  std::string all;
  for (const CodecRow& r : kCodecs) all += strformat("{}{}", all.empty() ? "" : ", ", r.name);
  fail("gguf.type", "{} is no type of ggml's; there are {}", quoted_name(text), all);
}

Tensor decoded(const Tensor& packed, const std::string& codec, const Dims& shape, DType dtype) {
  return decode(packed, codec_named(codec), shape, dtype, CallSite());
}

Tensor product(const Tensor& x, const Tensor& weight, const std::string& factors) {
  return product_with(x, weight, factors_named(factors).value_or(fastest_factors()), CallSite());
}

/// (..., bytes of a row): the blocks of (..., n) numbers.
Tensor packed(const Tensor& x, const std::string& codec) {
  const Released released;
  const GgufTensor made = gguf_tensor("x", x, codec_named(codec));
  std::vector<int64_t> shape = made.shape;
  if (shape.empty()) shape = {1};
  shape.back() = shape.back() / row(made.codec).elements * row(made.codec).bytes;
  return Tensor::from_bytes(made.bytes, DType::U8, Dims(shape), CallSite());
}

// ---- metadata that is written

template <class T>
GgufValue numbers(const std::vector<T>& x, bool array) {
  return array ? GgufValue::of_numbers(std::span<const T>(x)) : GgufValue::of_number(x.at(0));
}

/// The narrowest type that files usually have: u32, i32, else 64 bits; numbers with a point are
/// f32.
GgufValue written_numbers(const nb::list& items, bool array) {
  std::vector<double> floats;
  std::vector<int64_t> whole;
  bool all_whole = true;
  for (nb::handle item : items) {
    all_whole = all_whole && PyLong_Check(item.ptr());
    if (all_whole) whole.push_back(nb::cast<int64_t>(item));
    floats.push_back(nb::cast<double>(item));
  }
  if (!all_whole) return numbers(std::vector<float>(floats.begin(), floats.end()), array);
  const auto [least, greatest] = std::ranges::minmax(whole);
  if (least >= 0 && greatest <= UINT32_MAX)
    return numbers(std::vector<uint32_t>(whole.begin(), whole.end()), array);
  if (least >= INT32_MIN && greatest <= INT32_MAX)
    return numbers(std::vector<int32_t>(whole.begin(), whole.end()), array);
  return numbers(whole, array);
}

GgufValue written(nb::handle x) {
  if (PyUnicode_Check(x.ptr())) return GgufValue::of(text_of(x));
  if (PyBool_Check(x.ptr())) return GgufValue::of_number(nb::cast<bool>(x));
  const bool array = PyList_Check(x.ptr()) || PyTuple_Check(x.ptr());
  nb::list items;
  if (array)
    items = nb::list(x);
  else
    items.append(x);
  if (array && (nb::len(items) == 0 || PyUnicode_Check(nb::object(items[0]).ptr()))) {
    std::vector<std::string> texts;
    for (nb::handle item : items) texts.push_back(text_of(item));
    return GgufValue::of_texts(texts);
  }
  if (array && PyBool_Check(nb::object(items[0]).ptr())) {
    std::vector<uint8_t> flags;
    for (nb::handle item : items) flags.push_back(nb::cast<bool>(item) ? 1 : 0);
    return GgufValue::made(GgufType::Bool, true, std::as_bytes(std::span(flags)));
  }
  return written_numbers(items, array);
}

using Named = std::tuple<std::string, Tensor, std::string>;

void save(const std::string& path, const nb::dict& metadata, const std::vector<Named>& tensors) {
  GgufContent content;
  for (const auto& [key, value] : metadata)
    content.metadata.emplace_back(text_of(key), written(value));
  if (const GgufValue* alignment = content.value("general.alignment"))
    content.alignment = static_cast<uint32_t>(alignment->integer().value_or(0));
  const Released released;
  for (const auto& [name, x, codec] : tensors)
    content.tensors.push_back(gguf_tensor(name, x, codec_named(codec)));
  save_gguf(path, content);
}

}  // namespace

void bind_gguf(nb::module_& m) {
  method(m, "load_gguf", load, "path"_a);
  method(m, "parse_gguf", parse, "bytes"_a, "what"_a);
  method(m, "save_gguf", save, "path"_a, "metadata"_a, "tensors"_a);
  method(m, "decode", decoded, "packed"_a, "codec"_a, "shape"_a, "dtype"_a,
         "The numbers in packed blocks, decoded where they are used.");
  method(m, "product_with", product, "x"_a, "weight"_a, "factors"_a);
  method(m, "quantise", packed, "x"_a, "codec"_a, "Numbers as packed blocks, uint8.");
  method(
      m, "codecs",
      [] {
        nb::list all;
        for (const CodecRow& r : kCodecs)
          all.append(nb::make_tuple(static_cast<int>(r.codec),
                                    nb::str(r.name.data(), r.name.size()), r.elements, r.bytes));
        return all;
      },
      "(ggml_type, name, elements of a block, bytes of a block) of each.");
}

}  // namespace weft::python
