// TinyJit: a Python function whose kernels are captured once and then replayed.
#include "weft/tensor/jit.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/fork.h"
#include "weft/io/functions.h"
#include "weft/python/bindings.h"
#include "weft/python/contents.h"
#include "weft/tensor/host_constants.h"

namespace weft::python {

namespace {

/// The structure of a result with new handles in it. What a replay would not compute again is an
/// Error, unless it is an attribute of an object. Of a first call numbers are none: it says nothing
/// of what it reads on the host, which the second one will.
nb::object rebuilt(nb::handle result, bool first_call = false) {
  return Copy([first_call](nb::handle x, bool in_object) -> nb::object {
           if (const Tensor* t = tensor_in(x.ptr())) return nb::cast(Tensor(*t));
           const bool number = first_call && (PyNumber_Check(x.ptr()) || PyUnicode_Check(x.ptr()));
           if (in_object || number || x.is_none()) return nb::borrow(x);
           fail("jit.result",
                "a captured function returned a {}: a replay would not compute it again; "
                "return Tensors, or lists, tuples, dicts and objects of them",
                Py_TYPE(x.ptr())->tp_name);
         })
      .of(result);
}

/// The structure of a result without its Tensors: where they stand is their class.
nb::object skeleton_of(nb::handle result) {
  return Copy([](nb::handle x, bool) -> nb::object {
           return nb::borrow(tensor_in(x.ptr()) ? nb::type<Tensor>() : x);
         })
      .of(result);
}

/// The structure again, around Tensors that stand for results.
nb::object filled(nb::handle skeleton) {
  return Copy([](nb::handle x, bool) -> nb::object {
           return x.is(nb::type<Tensor>()) ? nb::cast(Tensor()) : nb::borrow(x);
         })
      .of(skeleton);
}

/// The tensors of a result; what else is in it was looked at when it was rebuilt.
class TensorsOnly final : public TensorVisitor {
 public:
  explicit TensorsOnly(TensorVisitor& inner) : inner_(inner) {}
  void tensor(const std::string& name, Tensor& x) override { inner_.tensor(name, x); }
  void size(const std::string&, const Dim&) override {}
  void constant(const std::string&, std::string) override {}

 private:
  TensorVisitor& inner_;
};

void visit_result(nb::handle x, TensorVisitor& v) {
  TensorsOnly tensors(v);
  Contents(tensors).visit("result", x);
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
    const Turn turn(*this);
    // What is captured, and what runs the same before that, finds state in memory.
    if (!loaded_ && state_.may_capture())
      nb::module_::import_("weft.contents").attr("realize_reachable")(f_);
    visit_arguments(args, kwargs);
    if (loaded_) return again(&JitState::call_loaded);
    const JitState::Mode mode = begin();
    return mode == JitState::Mode::Replay ? again(&JitState::replay) : run(mode, args, kwargs);
  }
  void reset() {
    between_calls([&] {
      state_.reset();
      if (!loaded_) shape_.reset();
    });
  }

  // ---- pickles

  nb::tuple reduce() {
    return between_calls([&] {
      if (!captured()) return nb::make_tuple(nb::type<JitFunction>(), nb::make_tuple(function()));
      std::vector<std::byte> data;
      {
        const Released released;
        data = function_bytes(state_.captured());
      }
      return nb::make_tuple(
          nb::module_::import_("weft.engine.jit").attr("unpickled"),
          nb::make_tuple(nb::bytes(data.data(), data.size()), skeleton_of(shape_)));
    });
  }
  void load(const nb::bytes& data, nb::handle skeleton) {
    const std::span bytes(static_cast<const std::byte*>(data.data()), data.size());
    state_.load(parse_function(bytes, "a pickled TinyJit"));
    shape_ = filled(skeleton);
    loaded_ = true;
  }
  size_t kernels() {
    return between_calls([&] { return state_.kernels(); });
  }
  int64_t kept_bytes() {
    return between_calls([&] { return state_.kept_bytes(); });
  }
  int64_t planned_bytes() {
    return between_calls([&] { return state_.planned_bytes(); });
  }
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
  /// One call at a time: another thread waits for its turn.
  class Turn {
   public:
    explicit Turn(JitFunction& f) : f_(f) {
      const std::thread::id self = std::this_thread::get_id();
      if (f.caller_ == self) fail("jit.nested", "this function is called inside of itself");
      if (!f.mutex_.try_lock()) {
        const GilReleased released;  // nothing is begun yet
        f.mutex_.lock();
      }
      f.caller_ = self;
    }
    ~Turn() {
      f_.caller_ = std::thread::id();
      f_.mutex_.unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    JitFunction& f_;
  };

  /// What looks at captures or forgets them waits for another thread's call, too.
  template <class F>
  std::invoke_result_t<F> between_calls(F&& f) {
    std::optional<Turn> turn;
    if (caller_ != std::this_thread::get_id()) turn.emplace(*this);
    return f();
  }

  void visit_arguments(const nb::args& args, const nb::kwargs& kwargs) {
    Contents found(state_.arguments());
    int64_t i = 0;
    for (nb::handle a : args) found.visit("argument " + std::to_string(i++), a);
    // Sorted, so that f(a=x, b=y) and f(b=y, a=x) are one call.
    nb::list names(kwargs.keys());
    names.attr("sort")();
    for (nb::handle name : names)
      found.visit("argument " + nb::cast<std::string>(name), kwargs[name]);
  }

  JitState::Mode begin() {
    const Released released;
    return state_.begin();
  }

  /// A result whose tensors `give` fills in.
  nb::object again(void (JitState::*give)()) {
    nb::object result = rebuilt(shape_);
    visit_result(result, state_.results());
    const Released released;
    (state_.*give)();
    return result;
  }

  nb::object run(JitState::Mode mode, const nb::args& args, const nb::kwargs& kwargs) {
    const bool capturing = mode == JitState::Mode::Capture;
    if (!capturing) constants_.clear();
    try {
      nb::object result;
      {
        using Constants = HostConstantsScope;
        const Constants found(constants_,
                              capturing ? Constants::Mode::Find : Constants::Mode::Record);
        result = f_(*args, **kwargs);
      }
      // What cannot be captured is an error at the first call.
      nb::object shape;
      if (Context::current().options().jit) shape = rebuilt(result, !capturing);
      visit_result(capturing ? shape : result, state_.results());
      {
        const Released released;
        state_.finish();
      }
      ++calls_;
      if (!capturing) return result;
      constants_.clear();
      if (state_.kernels() == 0 && !state_.writes() && result.is_none()) {
        state_.reset();
        fail("jit.empty",
             "{} returns nothing, writes nothing and runs no kernel: there is nothing to replay",
             name_of(f_));
      }
      shape_ = shape;
      return rebuilt(shape_);
    } catch (...) {
      state_.abandon();
      throw;
    }
  }

  /// What the other thread left may be half-made: it is not destroyed.
  void start_anew() {
    if (loaded_) return state_.abandon();  // there is nothing to start from
    state_.reset_after_fork();
    shape_.release();
    new (&constants_) HostConstantsScope::Store;
    calls_ = 0;
  }

  nb::object f_, shape_;                 // shape_: a result of the capture
  HostConstantsScope::Store constants_;  // of the plain run, until the captured one
  JitState state_;
  int64_t calls_ = 0;
  /// A child does not have the other thread that may be in a call: that call is given up, and the
  /// function starts anew.
  class AtFork final : public ForkLock {
   public:
    explicit AtFork(JitFunction& f) : f_(f) {}
    void before_fork() override {}
    bool try_before_fork() override { return true; }
    void after_in_parent() override {}
    void after_in_child() override {
      const std::thread::id caller = f_.caller_.load();
      if (caller == std::this_thread::get_id()) return;
      new (&f_.mutex_) std::mutex;  // somebody may have it who is no caller yet
      f_.caller_ = std::thread::id();
      if (caller != std::thread::id()) f_.start_anew();
    }

   private:
    JitFunction& f_;
    Registration registration_{*this, Order::Run};
  };

  std::mutex mutex_;                     // held by the call in progress
  std::atomic<std::thread::id> caller_;  // its thread
  AtFork at_fork_{*this};
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
nb::object bound(nb::handle_t<JitFunction> self, nb::handle object, nb::handle) {
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
      "tuples, dicts and objects. Numbers, strings, enums and None there are part of what is "
      "captured, and another one is a JitError; so is what cannot be looked into. Results, which "
      "may be objects too, share no memory between calls. Threads take turns.");
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
  c.def_prop_ro("kept_bytes", &JitFunction::kept_bytes,
                "Memory of what was computed once of tensors that no call changes.");
  c.def_prop_ro(
      "planned_bytes", &JitFunction::planned_bytes,
      "Memory that a replay needs: what it reads and keeps, outputs and intermediates; 0 before "
      "the capture.");
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
