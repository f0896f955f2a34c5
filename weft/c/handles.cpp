#include "weft/c/handles.h"

#include <deque>
#include <mutex>
#include <shared_mutex>

#include "weft/c/boundary.h"

namespace weft::c {

namespace {

// kind (4 bits), generation (28), place + 1 (32): never 0, and never twice the same before a place
// was used 2^28 times.
static_assert(sizeof(void*) == sizeof(uint64_t));
constexpr uint32_t kGenerations = (1u << 28) - 1;

struct Slot {
  std::shared_ptr<void> object;
  uint32_t generation = 0, kind = 0;
};

struct HandleTable {
  std::shared_mutex mutex;
  std::deque<Slot> slots;
  std::deque<uint32_t> free;  // used first that was released first

  Slot* find(uint64_t handle, uint32_t kind) {
    const auto place = static_cast<uint32_t>(handle) - 1;
    if (place >= slots.size() || handle >> 60 != kind) return nullptr;
    Slot& slot = slots[place];
    const bool alive = slot.object && slot.kind == kind;
    return alive && slot.generation == ((handle >> 32) & kGenerations) ? &slot : nullptr;
  }
};

HandleTable& table() {
  static auto* t = new HandleTable();  // used while statics go
  return *t;
}

}  // namespace

uint64_t add_handle(uint32_t kind, std::shared_ptr<void> object) {
  HandleTable& t = table();
  const std::lock_guard lock(t.mutex);
  if (t.free.empty()) {
    t.slots.emplace_back();
    t.free.push_back(static_cast<uint32_t>(t.slots.size() - 1));
  }
  const uint32_t place = t.free.front();
  t.free.pop_front();
  Slot& slot = t.slots[place];
  slot.generation = (slot.generation + 1) & kGenerations;
  slot.kind = kind;
  slot.object = std::move(object);
  return uint64_t{kind} << 60 | uint64_t{slot.generation} << 32 | (uint64_t{place} + 1);
}

std::shared_ptr<void> find_handle(uint64_t handle, uint32_t kind, const char* kind_name) {
  HandleTable& t = table();
  const std::shared_lock lock(t.mutex);
  if (const Slot* slot = t.find(handle, kind)) return slot->object;
  if (handle == 0) refuse("handle", "a {} is NULL", kind_name);
  refuse("handle", "0x{:x} is no {}, or one that was released", handle, kind_name);
}

std::shared_ptr<void> remove_handle(uint64_t handle, uint32_t kind) {
  HandleTable& t = table();
  const std::lock_guard lock(t.mutex);
  Slot* slot = t.find(handle, kind);
  if (!slot) return nullptr;
  t.free.push_back(static_cast<uint32_t>(handle) - 1);
  return std::exchange(slot->object, nullptr);
}

weft_tensor tensor_handle(const std::shared_ptr<ContextObject>& owner, Tensor x) {
  return make_handle<weft_tensor>(
      std::make_shared<TensorObject>(TensorObject{owner, std::move(x)}));
}

void tensor_handles(const std::shared_ptr<ContextObject>& owner, std::vector<Tensor> from,
                    weft_tensor* outs) {
  std::vector<weft_tensor> made;
  made.reserve(from.size());
  try {
    for (Tensor& x : from) made.push_back(tensor_handle(owner, std::move(x)));
  } catch (...) {
    for (weft_tensor handle : made) release_handle(handle);
    throw;
  }
  std::copy(made.begin(), made.end(), outs);
}

std::vector<Tensor> tensors_of(const weft_tensor* handles, size_t count,
                               std::shared_ptr<ContextObject>& owner) {
  require_pointer("tensors", handles, count);
  std::vector<Tensor> found;
  for (size_t i = 0; i < count; ++i) {
    const auto object = object_of(handles[i]);
    if (owner && object->owner != owner)
      refuse("handle", "tensor {} of the list belongs to another context", i);
    owner = object->owner;
    found.push_back(object->tensor);
  }
  return found;
}

}  // namespace weft::c
