// Tensors of weft.h to files and other libraries, and back.
#include "weft/c/boundary.h"
#include "weft/c/handles.h"
#include "weft/io/dlpack.h"
#include "weft/io/tensors.h"

namespace weft::c {

namespace {

using Foreign = dlpack::ManagedVersioned;  // what DLPack's own header calls otherwise

/// The producer's struct, given back with its last reader once it is armed.
struct Imported {
  std::shared_ptr<Foreign> managed;
  std::shared_ptr<bool> armed;
};

Imported import_later(Foreign* from) {
  const auto armed = std::make_shared<bool>(false);
  return {std::shared_ptr<Foreign>(from,
                                   [armed](Foreign* m) {
                                     if (*armed && m->deleter) m->deleter(m);
                                   }),
          armed};
}

}  // namespace

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

weft_status weft_save(const char* path, const char* const* names, const weft_tensor* tensors,
                      size_t count) {
  return guarded([&] {
    const std::string file(required_text("path", path));
    require_pointer("names", names, count);
    std::shared_ptr<ContextObject> owner;
    const std::vector<Tensor> all = tensors_of(tensors, count, owner);
    std::vector<NamedTensor> named;
    for (size_t i = 0; i < count; ++i)
      named.push_back({std::string(required_text("a name", names[i])), all[i]});
    std::optional<ContextScope> scope;
    if (owner) scope.emplace(owner->context);
    save_tensors(file, named);
  });
}

weft_status weft_load(weft_context context, const char* path,
                      weft_status (*found)(void* user, const char* name, weft_tensor x),
                      void* user) {
  return guarded([&] {
    const auto owner = object_of(context);
    const std::string file(required_text("path", path));
    require_pointer("found", reinterpret_cast<const void*>(found));
    const ContextScope scope(owner->context);
    for (NamedTensor& named : load_tensors(file).tensors) {
      const weft_tensor handle = tensor_handle(owner, std::move(named.tensor));
      const uint64_t before = errors_recorded();
      const weft_status status = found(user, named.name.c_str(), handle);
      if (status != WEFT_OK) throw CallbackFailed{status, errors_recorded() != before};
    }
  });
}

weft_status weft_tensor_to_dlpack(weft_tensor x, bool copy, DLManagedTensorVersioned** out) {
  return guarded([&] {
    const auto t = object_of(x);
    require_pointer("out", out);
    const ContextScope scope(t->owner->context);
    auto view = copy ? host_copy(t->tensor) : host_view(t->tensor);
    view->owner = t->owner;
    Foreign* managed =
        dlpack::export_view<Foreign>(std::move(view), copy ? dlpack::kIsCopied : dlpack::kReadOnly);
    *out = reinterpret_cast<DLManagedTensorVersioned*>(managed);
  });
}

weft_status weft_tensor_from_dlpack(weft_context context, DLManagedTensorVersioned* from, bool copy,
                                    weft_tensor* out) {
  return guarded([&] {
    const auto owner = object_of(context);
    require_pointer("from", from);
    require_pointer("out", out);
    const ContextScope scope(owner->context);
    const Imported imported = import_later(reinterpret_cast<Foreign*>(from));
    *out = tensor_handle(owner, dlpack::import_array(imported.managed, copy));
    *imported.armed = true;
  });
}

}  // extern "C"
