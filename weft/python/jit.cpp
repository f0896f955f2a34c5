// TinyJit: a Python function whose kernels are captured once and then replayed.
#include "weft/tensor/jit.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/io/functions.h"
#include "weft/python/bindings.h"
#include "weft/tensor/host_constants.h"

namespace weft::python {

namespace {

/// Tells a visitor what an argument holds: tensors, sizes, and what else a capture depends on.
void visit(const std::string& name, nb::handle x, TensorVisitor& v) {  // as deep as the containers
  if (Tensor* t = tensor_in(x.ptr())) return v.tensor(name, *t);
  if (nb::isinstance<DimObject>(x)) return v.size(name, nb::inst_ptr<DimObject>(x)->dim);
  if (PyTuple_Check(x.ptr()) || PyList_Check(x.ptr())) {
    int64_t i = 0;
    for (nb::handle member : x) visit(name + "[" + std::to_string(i++) + "]", member, v);
  } else if (PyDict_Check(x.ptr())) {
    for (const auto& [key, member] : nb::borrow<nb::dict>(x))
      visit(name + "[" + nb::cast<std::string>(nb::repr(key)) + "]", member, v);
  } else if (PyLong_Check(x.ptr()) || PyFloat_Check(x.ptr()) || PyUnicode_Check(x.ptr()) ||
             PyBytes_Check(x.ptr()) || x.is_none()) {
    v.constant(name, nb::cast<std::string>(nb::repr(x)));
  } else {
    v.constant(name, strformat("the {} at {}", Py_TYPE(x.ptr())->tp_name,
                               static_cast<const void*>(x.ptr())));
  }
}

/// The same lists, tuples and dicts around what `leaf` makes of everything else.
template <class Leaf>
nb::object mapped(nb::handle x, const Leaf& leaf) {  // as deep as the containers
  if (PyDict_Check(x.ptr())) {
    nb::dict copy;
    for (const auto& [key, member] : nb::borrow<nb::dict>(x)) copy[key] = mapped(member, leaf);
    return copy;
  }
  if (!PyTuple_Check(x.ptr()) && !PyList_Check(x.ptr())) return leaf(x);
  nb::list members;
  for (nb::handle member : x) members.append(mapped(member, leaf));
  if (PyList_Check(x.ptr())) return members;
  const nb::tuple all(members);
  return nb::hasattr(x, "_fields") ? x.type()(*all) : nb::object(all);  // a named tuple
}

/// The structure of a result with new handles in it; everything but Tensors and containers of them
/// is an Error.
nb::object rebuilt(nb::handle result) {
  return mapped(result, [](nb::handle x) -> nb::object {
    if (const Tensor* t = tensor_in(x.ptr())) return nb::cast(Tensor(*t));
    if (x.is_none()) return nb::none();
    fail("jit.result",
         "a captured function returned a {}: a replay would not compute it again; "
         "return Tensors, or lists, tuples and dicts of them",
         Py_TYPE(x.ptr())->tp_name);
  });
}

/// The structure of a result without its Tensors: where they stand there is True, elsewhere None.
nb::object skeleton_of(nb::handle result) {
  return mapped(result, [](nb::handle x) {
    return tensor_in(x.ptr()) ? nb::object(nb::bool_(true)) : nb::none();
  });
}

/// The structure again, around Tensors that stand for results.
nb::object filled(nb::handle skeleton) {
  return mapped(skeleton, [](nb::handle x) {
    return PyBool_Check(x.ptr()) ? nb::cast(Tensor()) : nb::borrow(x);
  });
}

/// A result may be None, or have it in it.
class WithoutNone final : public TensorVisitor {
 public:
  explicit WithoutNone(TensorVisitor& inner) : inner_(inner) {}
  void tensor(const std::string& name, Tensor& x) override { inner_.tensor(name, x); }
  void size(const std::string& name, const Dim& x) override { inner_.size(name, x); }
  void constant(const std::string& name, std::string text) override {
    if (text != "None") inner_.constant(name, std::move(text));
  }

 private:
  TensorVisitor& inner_;
};

void visit_result(nb::handle x, TensorVisitor& v) {
  WithoutNone tensors(v);
  visit("result", x, tensors);
}

std::string name_of(nb::handle f) {
  const nb::object name = nb::getattr(f, "__qualname__", nb::repr(f));
  return nb::cast<std::string>(name);
}

class JitFunction {
 public:
  JitFunction(nb::object f, std::string name)
      : f_(std::move(f)), state_(std::move(name), python_call_site()) {}

  nb::object call(const nb::args& args, const nb::kwargs& kwargs) {
    if (!f_.is_valid() && !loaded_) throw nb::type_error("this TinyJit has no function");
    if (running_) fail("jit.nested", "this function is called inside of itself");
    running_ = true;
    struct Done {
      bool& running;
      ~Done() { running = false; }
    } const done{running_};
    // The next run may be the one that is captured.
    if (calls_ == 1 && !loaded_ && !captured())
      nb::module_::import_("weft.reachable").attr("realize_reachable")(f_);
    visit_arguments(args, kwargs);
    if (loaded_) return again(&JitState::call_loaded);
    const JitState::Mode mode = begin();
    return mode == JitState::Mode::Replay ? again(&JitState::replay) : run(mode, args, kwargs);
  }
  void reset() {
    state_.reset();
    if (!loaded_) shape_.reset();
  }

  // ---- pickles

  nb::tuple reduce() const {
    if (!captured()) return nb::make_tuple(nb::type<JitFunction>(), nb::make_tuple(function()));
    std::vector<std::byte> data;
    {
      const nb::gil_scoped_release released;
      data = function_bytes(state_.captured());
    }
    return nb::make_tuple(nb::module_::import_("weft.engine.jit").attr("unpickled"),
                          nb::make_tuple(nb::bytes(data.data(), data.size()), skeleton_of(shape_)));
  }
  void load(const nb::bytes& data, nb::handle skeleton) {
    const std::span bytes(static_cast<const std::byte*>(data.data()), data.size());
    state_.load(parse_function(bytes, "a pickled TinyJit"));
    shape_ = filled(skeleton);
    loaded_ = true;
  }
  size_t kernels() const { return state_.kernels(); }
  bool captured() const { return shape_.is_valid(); }
  int64_t calls() const { return calls_; }
  nb::object function() const { return f_.is_valid() ? f_ : nb::none(); }

  /// For Python's search for cycles.
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(f_.ptr());
    Py_VISIT(shape_.ptr());
    return 0;
  }
  void clear() {
    f_.reset();
    shape_.reset();
  }

 private:
  void visit_arguments(const nb::args& args, const nb::kwargs& kwargs) {
    TensorVisitor& found = state_.arguments();
    int64_t i = 0;
    for (nb::handle a : args) visit("argument " + std::to_string(i++), a, found);
    // Sorted, so that f(a=x, b=y) and f(b=y, a=x) are one call.
    nb::list names(kwargs.keys());
    names.attr("sort")();
    for (nb::handle name : names)
      visit("argument " + nb::cast<std::string>(name), kwargs[name], found);
  }

  JitState::Mode begin() {
    const nb::gil_scoped_release released;
    return state_.begin();
  }

  /// A result whose tensors `give` fills in.
  nb::object again(void (JitState::*give)()) {
    nb::object result = rebuilt(shape_);
    visit_result(result, state_.results());
    const nb::gil_scoped_release released;
    (state_.*give)();
    return result;
  }

  nb::object run(JitState::Mode mode, const nb::args& args, const nb::kwargs& kwargs) {
    const bool capturing = mode == JitState::Mode::Capture;
    if (!capturing) constants_.clear();
    try {
      nb::object result;
      {
        using Constants = HostConstants;
        const Constants::Scope found(Context::current(), constants_,
                                     capturing ? Constants::Mode::Find : Constants::Mode::Record);
        result = f_(*args, **kwargs);
      }
      nb::object shape = capturing ? rebuilt(result) : nb::object();
      visit_result(capturing ? shape : result, state_.results());
      {
        const nb::gil_scoped_release released;
        state_.finish();
      }
      ++calls_;
      if (!capturing) return result;
      constants_.clear();
      if (state_.kernels() == 0 && result.is_none()) {
        state_.reset();
        fail("jit.empty", "{} returns nothing and runs no kernel: there is nothing to replay",
             name_of(f_));
      }
      shape_ = shape;
      return rebuilt(shape_);
    } catch (...) {
      state_.abandon();
      throw;
    }
  }

  nb::object f_, shape_;            // shape_: a result of the capture
  HostConstants::Store constants_;  // of the plain run, until the captured one
  JitState state_;
  int64_t calls_ = 0;
  bool running_ = false;
  bool loaded_ = false;  // from a pickle: there is no function
};

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<JitFunction>(self)->traverse(visit, arg) : 0;
}
int clear(PyObject* self) {
  nb::inst_ptr<JitFunction>(self)->clear();
  return 0;
}
PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(clear)},
                        {0, nullptr}};

/// A jitted method of a class is one function for every object, kept by the object: what one has
/// captured is no other's. An object that can keep nothing gets a method of them all.
nb::object bound(nb::handle self, nb::handle object, nb::handle) {
  if (object.is_none()) return nb::borrow(self);
  const nb::object f = nb::inst_ptr<JitFunction>(self)->function();
  if (!nb::hasattr(object, "__dict__") || f.is_none())
    return nb::steal(PyMethod_New(self.ptr(), object.ptr()));
  nb::dict own = nb::cast<nb::dict>(object.attr("__dict__"));
  // Whole, as a method that it overrides may be captured too.
  const nb::str name(("_jit_" + name_of(f)).c_str());
  if (!own.contains(name)) {
    const nb::object method = nb::steal(PyMethod_New(f.ptr(), object.ptr()));
    own[name] = nb::type<JitFunction>()(method);
  }
  return own[name];
}

}  // namespace

void bind_jit(nb::module_& m) {
  nb::class_<JitFunction> c(
      m, "TinyJit", nb::type_slots(kSlots), nb::dynamic_attr(),
      "TinyJit(f): a function that is called like f. The first call runs f; the second one runs it "
      "and records every kernel it launches; later ones launch those on the new arguments.\n\n"
      "Arguments are the Tensors (and bound Variables) in args and kwargs, also inside of lists, "
      "tuples and dicts. Numbers and strings are part of what is captured, and another one is a "
      "JitError. Results share no memory between calls.");
  c.def(
      "__init__",
      [](JitFunction* self, nb::object f, bool, bool) {
        if (f.is_none())
          new (self) JitFunction(nb::object(), "jit");
        else
          new (self) JitFunction(f, name_of(f));
      },
      "fxn"_a.none(), "prune"_a = false, "optimize"_a = false);
  c.def("__call__", &JitFunction::call, "args"_a, "kwargs"_a, nb::call_guard<PythonSite>());
  c.def("__reduce__", &JitFunction::reduce,
        "A captured function is pickled as its graph and the tensors it keeps, without its Python; "
        "one that was not yet, as the function it wraps.");
  c.def("__get__", bound, "instance"_a.none(), "owner"_a = nb::none());
  c.def("reset", &JitFunction::reset, "Forgets the capture; the next call runs plainly.");
  c.def_prop_ro("kernels", &JitFunction::kernels, "Kernels of a replay; 0 before the capture.");
  c.def_prop_ro("captured", &JitFunction::captured, "Whether calls are replays.");
  c.def_prop_ro("cnt", &JitFunction::calls, "Calls that ran the function itself.");
  c.def_prop_ro("fxn", &JitFunction::function);
  m.def(
      "unpickled_jit",
      [](const nb::bytes& data, nb::object skeleton) {
        nb::object f = nb::type<JitFunction>()(nb::none());
        nb::inst_ptr<JitFunction>(f)->load(data, skeleton);
        return f;
      },
      "data"_a, "skeleton"_a.none());
}

}  // namespace weft::python
