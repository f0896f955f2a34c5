// What Python objects hold: the tensors and values in arguments and results of captured functions.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/tensor/jit.h"

namespace weft::python {

namespace nb = nanobind;

/// Tells a visitor what objects hold: tensors, bound sizes, and as text what else a function may
/// look at. Containers and objects are looked into, recursively: shared ones and circles once, and
/// from where else they are reached they are the name they had. What cannot be looked into is an
/// Error.
class Contents {
 public:
  explicit Contents(TensorVisitor& visitor) : visitor_(visitor) {}
  void visit(const std::string& name, nb::handle x);

 private:
  struct Place {
    std::string name;
    nb::object x;
  };

  void look_at(const Place& place);
  bool is_new(const Place& place);
  void look_into(const Place& place);
  void look_into_object(const Place& place);

  TensorVisitor& visitor_;
  std::vector<Place> left_;                    // the next one last
  std::unordered_map<PyObject*, Place> seen_;  // alive, so that no address is used again
};

/// The same lists, tuples, dicts and objects around what `leaf` makes of everything else, which it
/// gets with whether it is an attribute of an object. What is reached twice is copied once.
class Copy {
 public:
  using Leaf = std::function<nb::object(nb::handle x, bool in_object)>;
  explicit Copy(Leaf leaf) : leaf_(std::move(leaf)) {}
  nb::object of(nb::handle x, bool in_object = false);

 private:
  nb::object dict_of(nb::handle x, bool in_object);
  nb::object list_of(nb::handle x, bool in_object);
  nb::object tuple_of(nb::handle x, bool in_object);
  nb::object object_of(nb::handle x, nb::handle attributes);

  Leaf leaf_;
  std::unordered_map<PyObject*, nb::object> copies_;
};

}  // namespace weft::python
