#include "weft/python/site.h"

#include <Python.h>
#include <frameobject.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace weft::python {

namespace {

/// One place in a code object. Finding its line walks a table as long as the function, so places
/// are remembered.
struct Place {
  PyCodeObject* code;
  int instruction;
  bool operator==(const Place&) const = default;
};
struct PlaceHash {
  size_t operator()(const Place& p) const {
    return reinterpret_cast<size_t>(p.code) / 16 * 31 + static_cast<size_t>(p.instruction);
  }
};

/// Guarded by the GIL. Code objects are held, so that none of their addresses is used again.
struct KnownPlaces {
  static constexpr size_t kMost = 1 << 15;
  std::unordered_map<Place, CallSite, PlaceHash> sites;
  std::string package_folder;             // with a slash at its end
  std::unordered_set<std::string> files;  // never forgotten: a CallSite's file is static

  void forget() {
    for (const auto& [place, site] : sites) Py_DECREF(place.code);
    sites.clear();
  }
};

KnownPlaces& known_places() {
  static auto* known = new KnownPlaces();  // code may run after every static is gone
  return *known;
}

/// Whether a file is this package's own: its callers are then what the user wants to see.
bool is_ours(std::string_view file) {
  const std::string& folder = known_places().package_folder;
  return !folder.empty() && file.starts_with(folder);
}

/// Empty for a place of our own.
CallSite new_site(PyFrameObject* frame, PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) return PyErr_Clear(), CallSite{"?", 0};
  if (is_ours(file)) return {};
  return {known_places().files.insert(file).first->c_str(), PyFrame_GetLineNumber(frame)};
}

CallSite site_of(PyFrameObject* frame) {
  KnownPlaces& known = known_places();
  PyCodeObject* code = PyFrame_GetCode(frame);
  const Place place{code, PyFrame_GetLasti(frame)};
  const auto found = known.sites.find(place);
  if (found != known.sites.end()) {
    Py_DECREF(code);
    return found->second;
  }
  if (known.sites.size() >= KnownPlaces::kMost) known.forget();
  return known.sites.emplace(place, new_site(frame, code)).first->second;  // keeps the reference
}

}  // namespace

void set_package_folder(std::string folder) {
  known_places().package_folder = std::move(folder) + "/";
}

CallSite python_call_site() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    const CallSite site = site_of(frame);
    PyFrameObject* outer = site ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    if (site) return site;
    frame = outer;
  }
  return {};
}

}  // namespace weft::python
