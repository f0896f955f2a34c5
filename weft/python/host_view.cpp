#include <nanobind/nanobind.h>

#include "weft/python/host_view.h"

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"

namespace weft::python {

std::unique_ptr<HostView> host_view_nogil(const Tensor& x) {
  const Released released;
  return weft::host_view(x);
}
std::unique_ptr<HostView> host_copy_nogil(const Tensor& x) {
  const Released released;
  return weft::host_copy(x);
}

// ---- the buffer protocol

namespace {

/// What a Py_buffer points into.
struct Export {
  std::unique_ptr<HostView> view;
  std::vector<Py_ssize_t> shape, strides;  // strides in bytes
};

/// Who asks for bytes alone, without shape or dtype, gets a copy: so does PyTorch, which writes to
/// what is read-only.
Export* new_export(const Tensor& x, int flags) {
  auto e = std::make_unique<Export>();
  const bool bytes_alone = (flags & (PyBUF_FORMAT | PyBUF_ND)) == 0;
  e->view = bytes_alone ? host_copy_nogil(x) : host_view_nogil(x);
  const int64_t size = bits(x.dtype()) / 8;
  e->shape.assign(e->view->shape.begin(), e->view->shape.end());
  for (int64_t s : e->view->strides) e->strides.push_back(s * size);
  return e.release();
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Tensor& x = *nb::inst_ptr<Tensor>(self);
  view->obj = nullptr;
  try {
    const PythonSite site;
    const char* format = buffer_format(x.dtype());
    if (!format)
      return PyErr_SetString(PyExc_BufferError, "this dtype has no buffer format: cast it"), -1;
    if (flags & PyBUF_WRITABLE)
      return PyErr_SetString(PyExc_BufferError,
                             "a Tensor's memory is read-only: write with assign()"),
             -1;
    Export* e = new_export(x, flags);
    const int size = bits(x.dtype()) / 8;
    *view = Py_buffer{};
    view->internal = e;
    view->buf = const_cast<void*>(e->view->data);
    view->len = e->view->numel() * size;
    view->itemsize = size;
    view->readonly = 1;
    view->ndim = static_cast<int>(e->shape.size());
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
    view->shape = flags & PyBUF_ND ? e->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? e->strides.data() : nullptr;
    view->obj = Py_NewRef(self);
    return 0;
  } catch (const std::exception& error) {
    return PyErr_SetString(PyExc_BufferError, error.what()), -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Export*>(view->internal); }

}  // namespace

PyType_Slot kBufferSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                              {0, nullptr}};

}  // namespace weft::python
