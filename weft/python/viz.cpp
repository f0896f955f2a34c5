// weft.viz: recordings made and looked at; weft.tensorboard: curves.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "weft/base/context.h"
#include "weft/io/event_file.h"
#include "weft/python/bindings.h"
#include "weft/run/recording_scope.h"
#include "weft/tensor/naming.h"
#include "weft/viz/session.h"
#include "weft/viz/views.h"

namespace weft::python {
namespace {

/// A recording that is looked at; one that grows is read again.
class RecordingFile {
 public:
  explicit RecordingFile(std::string path)
      : path_(std::move(path)), session_(viz::Session::open(path_)) {}

  std::string json(const std::string& view, const nb::dict& parameters) {
    return asked([&](const viz::Parameters& p) { return viz::view_json(now(), view, p); },
                 parameters);
  }
  std::string text(const std::string& view, const nb::dict& parameters) {
    return asked([&](const viz::Parameters& p) { return viz::view_text(now(), view, p, false); },
                 parameters);
  }

 private:
  const viz::Session& now() {
    if (session_->stale()) session_ = viz::Session::open(path_);
    return *session_;
  }
  template <class F>
  static std::string asked(const F& ask, const nb::dict& given) {
    viz::Parameters parameters;
    for (const auto& [name, value] : given)
      parameters.set(nb::cast<std::string>(name), nb::cast<std::string>(nb::str(value)));
    return ask(parameters);
  }

  std::string path_;
  std::unique_ptr<const viz::Session> session_;
};

}  // namespace

void bind_viz(nb::module_& m) {
  m.def(
      "start_recording",
      [](const std::string& path) { return start_recording(Context::current(), path); }, "path"_a,
      nb::call_guard<SiteWithoutGil>());
  m.def("name_tensor", &name_tensor, "tensor"_a, "name"_a);
  m.def("stop_recording", [] { stop_recording(Context::current()); }, nb::call_guard<Released>());
  nb::class_<RecordingFile>(m, "RecordingFile", "What weft.viz.Recording is made of.")
      .def(nb::init<std::string>(), "path"_a, nb::call_guard<PythonSite>())
      .def("json", &RecordingFile::json, "view"_a, "parameters"_a, nb::call_guard<PythonSite>())
      .def("text", &RecordingFile::text, "view"_a, "parameters"_a, nb::call_guard<PythonSite>());
  nb::class_<EventFile>(m, "EventFile", "What weft.tensorboard.SummaryWriter is made of.")
      .def(nb::init<const std::string&>(), "folder"_a, nb::call_guard<PythonSite>())
      .def("scalar", &EventFile::scalar, "tag"_a, "value"_a, "step"_a, nb::call_guard<PythonSite>())
      .def("flush", &EventFile::flush, nb::call_guard<PythonSite>())
      .def_prop_ro("path", [](const EventFile& file) { return file.path(); });
}

}  // namespace weft::python
