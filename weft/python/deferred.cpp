#include "weft/python/deferred.h"

#include <Python.h>

#include <mutex>
#include <vector>

namespace weft::python {

namespace {

struct Work {
  void (*f)(void*);
  void* argument;
};

struct Queue {
  std::mutex mutex;
  std::vector<Work> work;
};
Queue& queue() {
  static auto* q = new Queue();  // used while statics go
  return *q;
}

int run_all(void*) {
  std::vector<Work> work;
  {
    std::lock_guard lock(queue().mutex);
    work.swap(queue().work);
  }
  for (const Work& w : work) w.f(w.argument);
  return 0;
}

}  // namespace

void run_with_gil(void (*f)(void*), void* argument) {
  if (!Py_IsInitialized()) return;
  if (PyGILState_Check()) {
    run_all(nullptr);  // what had to wait goes first
    return f(argument);
  }
  {
    std::lock_guard lock(queue().mutex);
    queue().work.push_back({f, argument});
  }
  Py_AddPendingCall(run_all, nullptr);  // refused when full: the next one runs ours too
}

}  // namespace weft::python
