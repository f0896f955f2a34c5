#include "weft/python/contents.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

bool is_number_or_text(nb::handle x) {
  return x.is_none() || PyLong_Check(x.ptr()) || PyFloat_Check(x.ptr()) ||
         PyUnicode_Check(x.ptr()) || PyBytes_Check(x.ptr()) || PyComplex_Check(x.ptr());
}

std::string repr_of(nb::handle x) { return nb::cast<std::string>(nb::repr(x)); }

nb::object contents_module() { return nb::module_::import_("weft.contents"); }

/// Guards against structures that are deeper than the stack; a RecursionError.
struct RecursionScope {
  RecursionScope() {
    if (Py_EnterRecursiveCall(" while looking into a result")) throw nb::python_error();
  }
  ~RecursionScope() { Py_LeaveRecursiveCall(); }
};

}  // namespace

void Contents::visit(const std::string& name, nb::handle x) {
  left_.push_back({name, nb::borrow(x)});
  while (!left_.empty()) {
    const Place next = std::move(left_.back());
    left_.pop_back();
    look_at(next);
  }
}

void Contents::look_at(const Place& place) {
  nb::handle x = place.x;
  if (Tensor* t = tensor_in(x.ptr())) {
    // Passed as two arguments it is an Error: which of them is written?
    const bool is_argument = place.name.find_first_of(".[") == std::string::npos;
    if (is_argument || is_new(place)) visitor_.tensor(place.name, *t);
  } else if (nb::isinstance<DimObject>(x)) {
    visitor_.size(place.name, nb::inst_ptr<DimObject>(x)->dim);
  } else if (is_number_or_text(x)) {
    visitor_.constant(place.name, repr_of(x));
  } else {
    const size_t first = left_.size();
    look_into(place);
    std::reverse(left_.begin() + static_cast<ptrdiff_t>(first), left_.end());
  }
}

bool Contents::is_new(const Place& place) {
  const auto [known, is_new] = seen_.try_emplace(place.x.ptr(), place);
  if (!is_new) visitor_.constant(place.name, known->second.name);
  return is_new;
}

void Contents::look_into(const Place& place) {
  nb::handle x = place.x;
  int64_t i = 0;
  if (PyTuple_CheckExact(x.ptr())) {  // whether two are one is the interpreter's business
    for (nb::handle member : x)
      left_.push_back({strformat("{}[{}]", place.name, i++), nb::borrow(member)});
  } else if (PyList_CheckExact(x.ptr())) {
    if (!is_new(place)) return;
    for (nb::handle member : x)
      left_.push_back({strformat("{}[{}]", place.name, i++), nb::borrow(member)});
  } else if (PyDict_CheckExact(x.ptr())) {
    if (!is_new(place)) return;
    for (const auto& [key, member] : nb::borrow<nb::dict>(x))
      left_.push_back({strformat("{}[{}]", place.name, repr_of(key)), nb::borrow(member)});
  } else {
    look_into_object(place);
  }
}

void Contents::look_into_object(const Place& place) {
  if (seen_.contains(place.x.ptr())) {
    is_new(place);
    return;
  }
  nb::tuple found;
  try {
    found = nb::cast<nb::tuple>(contents_module().attr("look_into")(place.x));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    fail(
        "jit.argument",
        "{} is {}; a replay could not tell whether it changed: pass Tensors, numbers, strings, and "
        "containers or objects of them",
        place.name, nb::cast<std::string>(nb::str(error.value())));
  }
  const auto text = nb::cast<std::string>(found[0]);
  const auto members = nb::cast<nb::list>(found[1]);
  if (!text.empty()) visitor_.constant(place.name, text);
  if (members.size() > 0) seen_.emplace(place.x.ptr(), place);
  for (nb::handle member : members)
    left_.push_back({place.name + nb::cast<std::string>(member[0]), nb::borrow(member[1])});
}

// ---- results again

nb::object Copy::of(nb::handle x, bool in_object) {
  if (tensor_in(x.ptr()) || is_number_or_text(x)) return leaf_(x, in_object);
  if (const auto known = copies_.find(x.ptr()); known != copies_.end()) return known->second;
  const RecursionScope deeper;
  if (PyDict_Check(x.ptr())) return dict_of(x, in_object);
  if (PyList_Check(x.ptr())) return list_of(x, in_object);
  if (PyTuple_Check(x.ptr())) return tuple_of(x, in_object);
  const nb::object attributes = contents_module().attr("attributes")(x);
  return attributes.is_none() ? leaf_(x, in_object) : object_of(x, attributes);
}

nb::object Copy::dict_of(nb::handle x, bool in_object) {
  // A subclass is copied by its own method, which keeps its attributes.
  nb::dict copy = PyDict_CheckExact(x.ptr()) ? nb::dict() : nb::cast<nb::dict>(x.attr("copy")());
  copies_[x.ptr()] = copy;
  for (const auto& [key, member] : nb::borrow<nb::dict>(x)) copy[key] = of(member, in_object);
  return copy;
}

nb::object Copy::list_of(nb::handle x, bool in_object) {
  nb::list copy;
  copies_[x.ptr()] = copy;
  for (nb::handle member : x) copy.append(of(member, in_object));
  return copy;
}

nb::object Copy::tuple_of(nb::handle x, bool in_object) {
  nb::list members;
  for (nb::handle member : x) members.append(of(member, in_object));
  const nb::tuple all(members);
  return copies_[x.ptr()] = nb::hasattr(x, "_fields") ? x.type()(*all) : nb::object(all);
}

/// Set as object does, so that frozen ones may be copied.
nb::object Copy::object_of(nb::handle x, nb::handle attributes) {
  const nb::handle object(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  nb::object copy = object.attr("__new__")(x.type());
  copies_[x.ptr()] = copy;
  for (const auto& [name, member] : nb::borrow<nb::dict>(attributes))
    object.attr("__setattr__")(copy, name, of(member, true));
  return copy;
}

}  // namespace weft::python
