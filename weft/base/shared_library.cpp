#include "weft/base/shared_library.h"

#include <dlfcn.h>

namespace weft {

SharedLibrary::SharedLibrary(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) break;
    const char* said = ::dlerror();
    missing_ = said != nullptr ? said : name;
  }
}

void* SharedLibrary::address(const char* name) const {
  return handle_ != nullptr ? ::dlsym(handle_, name) : nullptr;
}

}  // namespace weft
