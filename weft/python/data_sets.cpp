// Data sets: batches that a thread fetches ahead, tables, pictures.
#include <nanobind/stl/function.h>
#include <nanobind/stl/unique_ptr.h>

#include <mutex>
#include <utility>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/fork.h"
#include "weft/io/cifar.h"
#include "weft/io/csv.h"
#include "weft/io/data_loader.h"
#include "weft/io/npy.h"
#include "weft/io/picture_folder.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"

namespace weft::python {

namespace {

/// A copy of a buffer's elements; nothing where there is none, or of no dtype.
std::optional<HostArray> array_of_buffer(PyObject* from) {
  Py_buffer view;
  if (!PyObject_CheckBuffer(from) || PyObject_GetBuffer(from, &view, PyBUF_FULL_RO) != 0)
    return PyErr_Clear(), std::nullopt;
  struct Release {
    Py_buffer& view;
    ~Release() { PyBuffer_Release(&view); }
  } const release{view};
  const auto dtype = dtype_of_format(view.format, view.itemsize);
  if (!dtype) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<size_t>(view.len));
  if (PyBuffer_ToContiguous(bytes.data(), &view, view.len, 'C') != 0) throw nb::python_error();
  return HostArray::owned(*dtype, {view.shape, view.shape + view.ndim}, std::move(bytes));
}

/// Arrays, lists of numbers, tensors. Needs the GIL.
std::vector<HostArray> host_arrays(nb::handle list) {
  std::vector<HostArray> arrays;
  for (nb::handle member : list) {
    if (auto array = array_of_buffer(member.ptr())) {
      arrays.push_back(std::move(*array));
      continue;
    }
    const Tensor t = tensor_from_object(member.ptr(), std::nullopt);
    const Released released;
    arrays.push_back(host_array_of(t));
  }
  return arrays;
}

/// A function of Python's as the thread that fetches ahead calls it; it goes with the GIL held.
DataLoader::Fetch fetching(nb::object function) {
  const std::shared_ptr<nb::object> held(new nb::object(std::move(function)), [](nb::object* o) {
    const GilAcquired gil;
    delete o;
  });
  Context& context = Context::current();
  return [held, &context](const std::vector<int64_t>& rows) {
    const GilAcquired gil;
    const ContextScope scope(context);
    try {
      return host_arrays((*held)(nb::cast(rows)));
    } catch (nb::python_error& error) {  // which would look like the end of the epoch
      if (!error.matches(PyExc_StopIteration)) throw;
      nb::raise_from(error, PyExc_RuntimeError, "what gives the rows raised StopIteration");
    }
  };
}

/// Its thread may wait for the GIL while the epoch is left.
struct Batches {
  Batches(const DataLoader& loader, int64_t number, int64_t first)
      : epoch(new DataLoader::Epoch(loader, number, first)) {}
  ~Batches() {
    const GilReleased released;
    epoch.reset();
  }
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  std::unique_ptr<DataLoader::Epoch> epoch;
  std::mutex turn;    // of threads that share it
  bool over = false;  // an error ends it, as it ends a generator: Python's can be raised but once
};

std::vector<Tensor> next_batch(Batches& batches) {
  std::optional<Batch> batch;
  {
    const GilReleased released;
    const std::lock_guard turn(batches.turn);
    const BusyScope busy;  // not of a thread that waits for its turn: a fetch may fork
    if (std::exchange(batches.over, true)) throw nb::stop_iteration();
    batch = batches.epoch->next();
    batches.over = !batch;
  }
  if (!batch) throw nb::stop_iteration();
  return *batch;
}

void bind_loader(nb::module_& m) {
  nb::class_<Batches>(m, "Batches")
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__", next_batch);
  nb::class_<DataLoader> loader(m, "DataLoader");
  loader.def(
      "__init__",
      [](DataLoader* self, int64_t rows, nb::object fetch, int64_t batch, bool shuffle,
         uint64_t seed, bool drop_last, int64_t prefetch) {
        new (self) DataLoader(rows, fetching(std::move(fetch)),
                              {batch, shuffle, seed, drop_last, prefetch}, python_call_site());
      },
      "rows"_a, "fetch"_a, "batch"_a, "shuffle"_a, "seed"_a, "drop_last"_a, "prefetch"_a);
  loader.def_static(
      "of_arrays",
      [](const nb::list& arrays, int64_t batch, bool shuffle, uint64_t seed, bool drop_last,
         int64_t prefetch) {
        return DataLoader(host_arrays(arrays), {batch, shuffle, seed, drop_last, prefetch},
                          python_call_site());
      },
      "arrays"_a, "batch"_a, "shuffle"_a, "seed"_a, "drop_last"_a, "prefetch"_a);
  loader.def("batches", &DataLoader::batches);
  method(loader, "order", &DataLoader::order, "epoch"_a);
  loader.def(
      "epoch",
      [](const DataLoader& x, int64_t epoch, int64_t first) {
        return std::make_unique<Batches>(x, epoch, first);
      },
      "epoch"_a, "first_batch"_a, nb::keep_alive<0, 1>());
}

void bind_tables(nb::module_& m) {
  nb::class_<CsvTable> table(m, "CsvTable");
  table.def("rows", &CsvTable::rows, "How many there are.");
  table.def(
      "names",
      [](const CsvTable& t) {
        std::vector<std::string> names;
        for (const CsvColumn& column : t.columns) names.push_back(column.name);
        return names;
      },
      "The columns' names.");
  method(
      table, "column",
      [](const CsvTable& t, const std::string& name) { return tensor_of(t[name].values); },
      "name"_a);
  method(
      table, "categories",
      [](const CsvTable& t, const std::string& name) { return t[name].categories; }, "name"_a);
  method(
      table, "matrix",
      [](const CsvTable& t, const std::vector<std::string>& names) {
        return tensor_of(t.matrix(names));
      },
      "names"_a = std::vector<std::string>());
  method(
      m, "read_csv",
      [](const std::string& path, char delimiter, bool header) {
        return read_csv(path, {delimiter, header});
      },
      "path"_a, "delimiter"_a, "header"_a);
  method(
      m, "parse_csv",
      [](const std::string& text, char delimiter, bool header) {
        return parse_csv(text, "the text", {delimiter, header});
      },
      "text"_a, "delimiter"_a, "header"_a);
}

Channels channels_of(int64_t count) {
  if (count == 0 || count == 1 || count == 3 || count == 4) return static_cast<Channels>(count);
  fail("picture", "{} channels: use 0 (as it is), 1, 3 or 4", count);
}

Tensor parsed_picture(const nb::bytes& data, int64_t channels) {
  const std::span bytes(static_cast<const std::byte*>(data.data()), data.size());
  return tensor_of(parse_picture(bytes, "the bytes", channels_of(channels)));
}

void bind_folder(nb::module_& m) {
  nb::class_<PictureFolder> folder(m, "PictureFolder");
  folder.def(
      "__init__",
      [](PictureFolder* self, const std::string& directory, int64_t height, int64_t width,
         int64_t channels) {
        new (self)
            PictureFolder(directory, {height, width, channels_of(channels)}, python_call_site());
      },
      "directory"_a, "height"_a, "width"_a, "channels"_a);
  folder.def("size", &PictureFolder::size);
  folder.def("classes", &PictureFolder::classes);
  method(folder, "path", &PictureFolder::path, "picture"_a);
  method(folder, "label", &PictureFolder::label, "picture"_a);
  method(
      folder, "fetch",
      [](const PictureFolder& f, const std::vector<int64_t>& pictures) {
        std::vector<Tensor> tensors;
        for (const HostArray& a : f.fetch(pictures)) tensors.push_back(tensor_of(a));
        return tensors;
      },
      "pictures"_a);
  folder.def(
      "loader",
      [](const PictureFolder& f, int64_t batch, bool shuffle, uint64_t seed, bool drop_last,
         int64_t prefetch) {
        return f.loader({batch, shuffle, seed, drop_last, prefetch}, python_call_site());
      },
      "batch"_a, "shuffle"_a, "seed"_a, "drop_last"_a, "prefetch"_a);
}

void bind_pictures(nb::module_& m) {
  method(
      m, "read_picture",
      [](const std::string& path, int64_t channels) {
        return tensor_of(read_picture(path, channels_of(channels)));
      },
      "path"_a, "channels"_a);
  method(m, "parse_picture", parsed_picture, "data"_a, "channels"_a);
  method(
      m, "resized_picture",
      [](const Tensor& picture, int64_t height, int64_t width) {
        return tensor_of(resized(host_array_of(picture), height, width));
      },
      "picture"_a, "height"_a, "width"_a);
  method(
      m, "read_npy", [](const std::string& path) { return tensor_of(read_npy(path)); }, "path"_a);
  method(
      m, "save_npy",
      [](const std::string& path, const Tensor& x) { save_npy(path, host_array_of(x)); }, "path"_a,
      "x"_a);
  method(
      m, "read_cifar",
      [](const std::string& directory, int64_t classes, bool train) {
        if (classes != 10 && classes != 100) fail("read_cifar", "CIFAR-{}: use 10 or 100", classes);
        const CifarSet set =
            read_cifar(directory, classes == 10 ? Cifar::Ten : Cifar::Hundred, train);
        return std::pair(tensor_of(set.images), tensor_of(set.labels));
      },
      "directory"_a, "classes"_a, "train"_a);
}

}  // namespace

void bind_data_sets(nb::module_& m) {
  bind_loader(m);
  bind_tables(m);
  bind_pictures(m);
  bind_folder(m);
}

}  // namespace weft::python
