#include "weft/c/boundary.h"

#include <new>
#include <stdexcept>

namespace weft::c {

namespace {

struct LastError {
  weft_status status = WEFT_OK;
  std::string code, tag, message, text;
};
thread_local LastError t_error;
thread_local uint64_t t_recorded = 0;
thread_local CallSite t_site{"weft.h", 0};
thread_local bool t_site_given = false;

weft_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Value: return WEFT_ERROR_VALUE;
    case ErrorKind::Type: return WEFT_ERROR_TYPE;
    case ErrorKind::Index: return WEFT_ERROR_INDEX;
    case ErrorKind::Runtime: return WEFT_ERROR_RUNTIME;
    case ErrorKind::Memory: return WEFT_ERROR_MEMORY;
    case ErrorKind::Device: return WEFT_ERROR_DEVICE;
    case ErrorKind::Internal: break;
  }
  return WEFT_ERROR_INTERNAL;
}

weft_status remember(weft_status status, std::string_view code, std::string_view message) {
  LastError e;
  e.status = status;
  e.code = code;
  e.tag = e.code.substr(0, e.code.find('.'));
  e.message = message;
  e.text = strformat("[{}] {}", e.tag, e.message);
  if (t_site_given) append_format(e.text, " ({})", short_text(t_site));
  t_error = std::move(e);
  return status;
}

weft_status remember_current() {
  try {
    throw;
  } catch (const Refused& e) {
    return remember(e.status, e.code, e.message);
  } catch (const Error& e) {
    return remember(status_of(e.kind()), e.code(), e.message());
  } catch (const CallbackFailed& e) {
    if (e.recorded) return e.status;
    return remember(e.status, "callback", strformat("the function returned status {}", e.status));
  } catch (const std::bad_alloc&) {
    return remember(WEFT_ERROR_MEMORY, "memory", "the machine has no memory left");
  } catch (const std::length_error&) {
    return remember(WEFT_ERROR_MEMORY, "memory", "a size beyond what memory can have");
  } catch (const std::exception& e) {
    return remember(WEFT_ERROR_INTERNAL, "internal", e.what());
  } catch (...) {
    return remember(WEFT_ERROR_INTERNAL, "internal", "an exception of unknown type");
  }
}

}  // namespace

void refuse_space(std::string_view what, size_t needed, size_t capacity) {
  throw Refused(WEFT_ERROR_SPACE, "space",
                strformat("{}: {} results, and room for {}", what, needed, capacity));
}

weft_status record_current_exception() noexcept {
  ++t_recorded;
  try {
    return remember_current();
  } catch (...) {  // no memory for the words
    t_error.status = WEFT_ERROR_MEMORY;
    return WEFT_ERROR_MEMORY;
  }
}

uint64_t errors_recorded() noexcept { return t_recorded; }
CallSite thread_call_site() noexcept { return t_site; }

void require_pointer(const char* what, const void* pointer, size_t count) {
  if (!pointer && count > 0) refuse("null", "{} is NULL", what);
}

std::string_view required_text(const char* what, const char* text) {
  require_pointer(what, text);
  return text;
}

void write_text(std::string_view from, char* text, size_t capacity, size_t* length) {
  if (length) *length = from.size();
  if (!text) return require_pointer("length", length);
  if (capacity <= from.size()) refuse_space("text", from.size() + 1, capacity);
  std::memcpy(text, from.data(), from.size());
  text[from.size()] = 0;
}

void write_list(const char* what, const std::vector<int64_t>& from, int64_t* to, size_t capacity,
                size_t* count) {
  if (count) *count = from.size();
  if (from.size() > capacity) refuse_space(what, from.size(), capacity);
  require_pointer(what, to, from.size());
  std::copy(from.begin(), from.end(), to);
}

void check_struct_size(const char* what, uint32_t size, size_t least) {
  constexpr uint32_t kMost = 1024;  // a size that was never written should not be believed
  if (size < least || size > kMost)
    refuse("struct", "{} has struct_size {}: initialise it with WEFT_STRUCT", what, size);
}

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

uint32_t weft_abi_version(void) { return WEFT_ABI_VERSION; }

weft_status weft_last_error(weft_error* out) {
  const LastError& e = t_error;
  const weft_error error{sizeof(weft_error), e.status,          e.code.c_str(),
                         e.tag.c_str(),      e.message.c_str(), e.text.c_str()};
  try {
    write_struct("weft_error", error, out, offsetof(weft_error, text));
    return WEFT_OK;
  } catch (...) {  // what was asked for stays
    return WEFT_ERROR_ARGUMENT;
  }
}

void weft_call_site(const char* file, int32_t line) {
  t_site_given = file != nullptr;
  t_site = t_site_given ? CallSite{file, line} : CallSite{"weft.h", 0};
}

}  // extern "C"
