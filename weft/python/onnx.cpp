// ONNX models: weft.nn.onnx.OnnxRunner is this with Python's manners.
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>

#include "weft/base/error.h"
#include "weft/onnx/export.h"
#include "weft/onnx/runner.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/python/host_view.h"

namespace weft::python {

namespace {

using onnx::DeclaredType;
using onnx::OnnxRunner;
using Kind = onnx::Value::Kind;

constexpr const char* kKinds[] = {"unknown", "tensor", "sparse", "sequence", "map", "optional"};

// ---- values

/// Strings are (list, shape); sequences lists; optionals their element or None; maps dicts.
onnx::Value value_of(nb::handle x, const DeclaredType& declared) {
  static const DeclaredType kUnknown;
  const DeclaredType& inner = declared.of ? *declared.of : kUnknown;
  if (declared.kind == DeclaredType::Kind::Optional) {
    return onnx::Value::optional(x.is_none() ? onnx::Value() : value_of(x, inner));
  }
  if (x.is_none()) return {};
  if (nb::isinstance<nb::list>(x)) {
    onnx::Values elements;
    for (nb::handle element : x) elements.push_back(value_of(element, inner));
    return onnx::Value::sequence(std::move(elements));
  }
  if (nb::isinstance<nb::tuple>(x)) {
    auto [texts, shape] = nb::cast<std::pair<std::vector<std::string>, std::vector<int64_t>>>(x);
    return onnx::Value::strings(std::move(texts), std::move(shape));
  }
  Tensor t = tensor_from_object(x.ptr(), std::nullopt);
  const bool other = onnx::dtype_of(declared.element) == t.dtype();
  return other ? onnx::Value(std::move(t), declared.element) : onnx::Value(std::move(t));
}

nb::object object_of(const onnx::Value& x);

nb::object list_of(const onnx::Values& values) {
  nb::list all;
  for (const onnx::Value& v : values) all.append(object_of(v));
  return all;
}

nb::object strings_of(const onnx::Value& x) {
  nb::list texts;
  for (const std::string& text : x.texts()) texts.append(nb::str(text.data(), text.size()));
  nb::list shape;
  for (const Dim& d : x.dims()) shape.append(d.value());
  return nb::make_tuple(texts, nb::tuple(shape));
}

nb::object object_of(const onnx::Value& x) {
  switch (x.kind()) {
    case Kind::None: return nb::none();
    case Kind::Tensor: return nb::cast(x.tensor());
    case Kind::Strings: return strings_of(x);
    case Kind::Sequence: return list_of(x.elements());
    case Kind::Optional: return x.elements().empty() ? nb::none() : object_of(x.elements()[0]);
    case Kind::Map: break;
  }
  return nb::make_tuple(object_of(x.elements()[0]), object_of(x.elements()[1]));
}

// ---- models

nb::object shape_of(const DeclaredType& type) {
  if (!type.shape) return nb::none();
  nb::list sizes;
  for (const onnx::DeclaredDim& d : *type.shape) {
    if (d.size)
      sizes.append(*d.size);
    else
      sizes.append(d.name.empty() ? nb::object(nb::none()) : nb::object(nb::str(d.name.c_str())));
  }
  return nb::tuple(sizes);
}

/// (name, kind, element type, shape).
nb::list declared(const std::vector<onnx::DeclaredValue>& values) {
  nb::list all;
  for (const onnx::DeclaredValue& v : values) {
    const DeclaredType& type = v.type;
    all.append(nb::make_tuple(v.name, kKinds[static_cast<size_t>(type.kind)],
                              onnx::name(type.element), shape_of(type)));
  }
  return all;
}

nb::dict call(OnnxRunner& runner, const nb::dict& inputs) {
  static const DeclaredType kUnknown;
  onnx::NamedValues given;
  for (const auto& [key, x] : inputs) {
    const auto name = nb::cast<std::string>(key);
    const DeclaredType* type = &kUnknown;
    for (const onnx::DeclaredValue& v : runner.model().graph.inputs)
      if (v.name == name) type = &v.type;
    given.emplace(name, value_of(x, *type));
  }
  onnx::NamedValues outputs;
  {
    const Released released;
    outputs = runner(given);
  }
  nb::dict all;
  for (const onnx::DeclaredValue& v : runner.outputs())
    all[nb::str(v.name.data(), v.name.size())] = object_of(outputs.at(v.name));
  return all;
}

nb::dict empty_inputs(const OnnxRunner& runner) {
  nb::dict all;
  for (const auto& [name, value] : runner.empty_inputs())
    all[nb::str(name.data(), name.size())] = object_of(value);
  return all;
}

/// Of a tensor of a file's bytes, which it goes on reading.
OnnxRunner of_bytes(const Tensor& bytes, const std::string& what) {
  if (bytes.ndim() != 1 || bytes.dtype() != DType::U8)
    fail("onnx", "{}: a 1-D uint8 Tensor can be read as a file, not {} of shape {}", what,
         name(bytes.dtype()), bytes.dims().text());
  const std::shared_ptr<HostView> view = host_view(bytes);
  const std::span data(static_cast<const std::byte*>(view->data),
                       static_cast<size_t>(view->numel()));
  return OnnxRunner(onnx::parse_onnx(data, what, view));
}

// ---- export

using NamedAxes = std::map<std::string, std::map<int64_t, std::string>>;

/// Gives the names of its results too, which are known once it was called.
using NamedFunction = std::function<std::pair<std::vector<std::string>, Tensors>(const Tensors&)>;

onnx::Model exported(const NamedFunction& f, const Tensors& inputs,
                     const std::vector<std::string>& names,
                     const std::vector<std::pair<std::string, Tensor>>& state,
                     const NamedAxes& axes, int64_t opset, const std::string& name) {
  onnx::ExportOptions options;
  options.input_names = names;
  for (const auto& [key, tensor] : state) options.state.push_back({key, tensor});
  options.dynamic_axes = axes;
  options.opset = opset;
  options.name = name;
  const TensorFunction called = [&](const Tensors& holes) {
    auto [outputs, results] = f(holes);
    options.output_names = std::move(outputs);
    return results;
  };
  return onnx::export_onnx(called, inputs, options);
}

nb::bytes bytes_of(const onnx::Model& model) {
  const std::vector<std::byte> bytes = onnx::onnx_bytes(model);
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_onnx(nb::module_& m) {
  nb::class_<onnx::Model> e(m, "OnnxExport",
                            "A model to be written; weft.onnx.export() is what users see.");
  e.def_static("of", exported, "f"_a, "inputs"_a, "input_names"_a, "state"_a, "dynamic_axes"_a,
               "opset"_a, "name"_a, nb::call_guard<PythonSite>());
  method(e, "bytes", bytes_of);
  method(
      e, "save",
      [](const onnx::Model& model, const std::string& path, bool external_data) {
        const Released released;
        onnx::save_onnx(path, model, {.external_data = external_data});
      },
      "path"_a, "external_data"_a);
  nb::class_<OnnxRunner> c(m, "OnnxModel", "An ONNX model; weft.nn.onnx has what users see.");
  c.def_static(
      "of_file", [](const std::string& path) { return OnnxRunner(path); }, "path"_a,
      nb::call_guard<PythonSite>());
  c.def_static("of_bytes", of_bytes, "bytes"_a, "what"_a, nb::call_guard<PythonSite>());
  method(c, "__call__", call, "inputs"_a);
  method(c, "empty_inputs", empty_inputs);
  method(c, "inputs", [](const OnnxRunner& r) { return declared(r.inputs()); });
  method(c, "outputs", [](const OnnxRunner& r) { return declared(r.outputs()); });
  method(c, "state_dict", [](OnnxRunner& r) {
    std::vector<std::pair<std::string, Tensor>> all;
    for (const NamedTensor& t : r.state_dict()) all.emplace_back(t.name, t.tensor);
    return all;
  });
  method(c, "parameters", &OnnxRunner::parameters);
  method(
      c, "save",
      [](const OnnxRunner& r, const std::string& path, bool external_data) {
        onnx::save_onnx(path, r.trained(), {.external_data = external_data});
      },
      "path"_a, "external_data"_a);
  c.def_prop_ro("kernels", &OnnxRunner::kernels);
}

}  // namespace weft::python
