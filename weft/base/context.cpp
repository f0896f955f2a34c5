#include "weft/base/context.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/log.h"
#include "weft/base/thread_pool.h"

namespace weft {

namespace {

thread_local Context* t_current = nullptr;

// Never freed: Tensors with static storage may outlive any destructor we could have. What must
// happen at exit (the trace file) happens in ~DefaultContext.
struct DefaultContext {
  Context* context = new Context();
  ~DefaultContext() { context->flush(); }
};

}  // namespace

struct PoolSlot {
  ThreadPool pool;
  explicit PoolSlot(Context& context) : pool(static_cast<int>(context.options().threads)) {}
};

Context::Context() : Context(Options::from_environment()) {}

/// In order of making.
struct Context::Slots {
  std::recursive_mutex mutex;
  std::vector<Slot*> made;
};

Context::Context(Options options) : options_(std::move(options)), slots_(new Slots) {
  if (!options_.profile.empty()) tracer_.start();
}

Context::~Context() {
  flush();
  // A destructor may still use slots made before its own, which go later.
  while (!slots_->made.empty()) {
    Slot* last = slots_->made.back();
    last->destroy(last->object);
    buckets_[bucket_of(last->key)].store(last->next);
    slots_->made.pop_back();
    delete last;
  }
  delete slots_;
}

void Context::flush() {
  tracer_.flush_sink();
  if (options_.profile.empty() || tracer_.recorded() == 0) return;
  try {
    atomic_write_file(options_.profile, tracer_.chrome_json());
  } catch (const std::exception& error) {
    log_line(*this, error.what());  // called at exit: nobody is left to catch it
  }
}

Context& Context::current() {
  if (t_current != nullptr) return *t_current;
  static DefaultContext the_default;
  return *the_default.context;
}

ThreadPool& Context::thread_pool() { return get<PoolSlot>().pool; }

void* Context::make(const void* key, MakeSlot maker, DestroySlot destroy) {
  std::lock_guard lock(slots_->mutex);
  if (void* found = find(key)) return found;
  void* object = maker(*this);
  WEFT_CHECK(find(key) == nullptr, "a context slot asked for itself while being made");
  std::atomic<Slot*>& bucket = buckets_[bucket_of(key)];
  auto* slot = new Slot{key, object, destroy, bucket.load(std::memory_order_relaxed)};
  slots_->made.push_back(slot);
  bucket.store(slot, std::memory_order_release);
  return object;
}

ContextScope::ContextScope(Context& context) : outer_(t_current) { t_current = &context; }
ContextScope::~ContextScope() { t_current = outer_; }

bool log_enabled(const Context& context, int level) { return context.options().debug >= level; }

void log_line(Context& context, std::string_view line) {
  const LogSink& sink = context.log_sink();
  if (sink.write != nullptr) return sink.write(sink.user, line);
  const std::string& path = context.options().log;
  std::FILE* file = path.empty() ? stderr : std::fopen(path.c_str(), "ae");
  if (file == nullptr) {
    static std::atomic<bool> told = false;
    if (!told.exchange(true))
      std::fprintf(stderr, "weft: WEFT_LOG: %s: %s; log lines go to stderr\n", path.c_str(),
                   std::strerror(errno));
    file = stderr;
  }
  std::fprintf(file, "%.*s\n", static_cast<int>(line.size()), line.data());
  if (file != stderr) std::fclose(file);
}

}  // namespace weft
