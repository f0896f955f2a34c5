// Data of the host as tensors: numbers, nested lists, everything with Python's buffer protocol.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "weft/io/disk.h"

namespace weft::python {

/// A copy of any Python object that holds numbers; weft::Error and Python's errors for what does
/// not.
Tensor tensor_from_object(PyObject* from, std::optional<DType> dtype);
/// A copy of a bytes-like object or array; strides of any kind.
Tensor tensor_from_buffer(PyObject* from, std::optional<DType> dtype);

/// The struct format of a dtype's elements, null where Python has none (bf16), and back.
const char* buffer_format(DType d);
std::optional<DType> dtype_of_format(const char* format, Py_ssize_t itemsize);

/// One element as a Python number.
PyObject* python_number(Value v);

/// What dtype=None means for floats and integers; per context.
struct DefaultDTypes {
  DType floats = kDefaultFloat, ints = kDefaultInt;
};
DefaultDTypes& default_dtypes();

}  // namespace weft::python
