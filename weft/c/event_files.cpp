// Curves of a training, of weft.h.
#include "weft/c/boundary.h"
#include "weft/c/handles.h"
#include "weft/io/event_file.h"

namespace weft::c {

struct EventFileObject {
  explicit EventFileObject(const std::string& folder) : events(folder) {}
  std::mutex mutex;
  EventFile events;
};

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

weft_status weft_event_file_create(const char* folder, weft_event_file* out) {
  return guarded([&] {
    const std::string place(required_text("folder", folder));
    require_pointer("out", out);
    *out = make_handle<weft_event_file>(std::make_shared<EventFileObject>(place));
  });
}

weft_status weft_event_file_scalar(weft_event_file file, const char* tag, double value,
                                   int64_t step) {
  return guarded([&] {
    const auto object = object_of(file);
    const std::string_view curve = required_text("tag", tag);
    const std::lock_guard lock(object->mutex);
    object->events.scalar(curve, value, step);
  });
}

weft_status weft_event_file_flush(weft_event_file file) {
  return guarded([&] {
    const auto object = object_of(file);
    const std::lock_guard lock(object->mutex);
    object->events.flush();
  });
}

weft_status weft_event_file_path(weft_event_file file, char* path, size_t capacity,
                                 size_t* length) {
  return guarded([&] { write_text(object_of(file)->events.path(), path, capacity, length); });
}

void weft_event_file_release(weft_event_file file) { release_handle(file); }

}  // extern "C"
