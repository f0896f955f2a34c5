// Letting go of Python's lock and waiting for it, in threads that Python may end before.
#pragma once

#include <Python.h>
#include <unistd.h>

namespace weft::python {

/// Waits for the GIL. Where Python ends first CPython 3.11 to 3.13 unwind the thread, which our
/// callers' frames do not bear: it waits for the end of the process instead, as of 3.14 on.
template <class Take>
void take_gil(Take&& take) {
  try {
    take();
  } catch (...) {
    while (true) ::pause();
  }
}
/// Without the GIL, for mere waits.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() {
    take_gil([this] { PyEval_RestoreThread(state_); });
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};
/// With it, in a thread that may not have it.
class GilAcquired {
 public:
  GilAcquired() {
    take_gil([this] { state_ = PyGILState_Ensure(); });
  }
  ~GilAcquired() { PyGILState_Release(state_); }
  GilAcquired(const GilAcquired&) = delete;
  GilAcquired& operator=(const GilAcquired&) = delete;

 private:
  PyGILState_STATE state_{};
};

}  // namespace weft::python
