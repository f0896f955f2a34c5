#include "tests/support/small_stack.h"

#include <pthread.h>

#include <exception>

#include "weft/base/error.h"

namespace weft {
namespace {

struct Job {
  const std::function<void()>* body;
  std::exception_ptr error;
};

void* run(void* argument) {
  auto* job = static_cast<Job*>(argument);
  try {
    (*job->body)();
  } catch (...) {
    job->error = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void on_small_stack(const std::function<void()>& body, size_t bytes) {
  Job job{&body, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, bytes);
  pthread_t thread;
  const int status = pthread_create(&thread, &attributes, run, &job);
  pthread_attr_destroy(&attributes);
  if (status != 0) fail_errno("test", "starting a thread with a small stack", status);
  pthread_join(thread, nullptr);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace weft
