// Context: everything that would otherwise be global. Options, log, tracer, threads, and slots in
// which upper rooms keep their own state. See the README for what threads may share.
#pragma once

#include <atomic>
#include <string_view>

#include "weft/base/options.h"
#include "weft/base/spans.h"

namespace weft {

class ThreadPool;

// Where lines go. The default sink appends to WEFT_LOG or writes to stderr.
struct LogSink {
  void (*write)(void* user, std::string_view line) = nullptr;
  void* user = nullptr;
};

class Context {
 public:
  Context();  // options from the environment
  explicit Context(Options options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // This thread's innermost ContextScope, else the process's default context, made on first use.
  static Context& current();

  const Options& options() const { return options_; }
  // Only before the context is shared with other threads.
  Options& mutable_options() { return options_; }

  Tracer& tracer() { return tracer_; }
  ThreadPool& thread_pool();  // started on first use
  LogSink& log_sink() { return log_sink_; }

  // The one T of this context: made by T(Context&) or T() on first use, destroyed in reverse order
  // of making. T's constructor may ask for other slots. Any thread may call.
  template <class T>
  T& get() {
    if (void* found = find(&kSlotKey<T>)) return *static_cast<T*>(found);
    return *static_cast<T*>(make(&kSlotKey<T>, &Context::make_slot<T>, &Context::destroy_slot<T>));
  }
  // The T if it was made already.
  template <class T>
  T* get_if() const {
    return static_cast<T*>(find(&kSlotKey<T>));
  }

  // Writes the trace asked for by WEFT_PROFILE, and what WEFT_VIZ has not written yet; also done by
  // the destructor.
  void flush();

 private:
  struct Slots;
  using MakeSlot = void* (*)(Context&);
  using DestroySlot = void (*)(void*);
  static constexpr size_t kBuckets = 64;
  struct Slot {
    const void* key;
    void* object;
    DestroySlot destroy;
    Slot* next;  // in the same bucket; fixed once published
  };

  template <class T>
  static inline const char kSlotKey = 0;  // its address identifies T

  template <class T>
  static void* make_slot(Context& context) {
    if constexpr (requires { T(context); }) {
      return new T(context);
    } else {
      return new T();
    }
  }
  template <class T>
  static void destroy_slot(void* object) {
    delete static_cast<T*>(object);
  }

  static size_t bucket_of(const void* key) {
    return (reinterpret_cast<uintptr_t>(key) * 0x9e3779b97f4a7c15u) >> 58;
  }
  void* find(const void* key) const {
    const Slot* slot = buckets_[bucket_of(key)].load(std::memory_order_acquire);
    while (slot != nullptr && slot->key != key) slot = slot->next;
    return slot != nullptr ? slot->object : nullptr;
  }
  void* make(const void* key, MakeSlot maker, DestroySlot destroy);

  Options options_;
  LogSink log_sink_;
  Tracer tracer_;
  std::atomic<Slot*> buckets_[kBuckets] = {};
  Slots* slots_;  // owned
};

// Makes `context` this thread's current one for a block.
class ContextScope {
 public:
  explicit ContextScope(Context& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  Context* outer_;
};

}  // namespace weft
