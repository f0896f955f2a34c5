// SharedLibrary: a library that may or may not be on the machine, loaded when it is first asked
// for.
#pragma once

#include <initializer_list>
#include <string>

namespace weft {

// Stays loaded for ever: what was taken from it may be anywhere.
class SharedLibrary {
 public:
  // The first of these names that loads.
  explicit SharedLibrary(std::initializer_list<const char*> names);

  bool loaded() const { return handle_ != nullptr; }
  // What the loader said of the last name that it did not find.
  const std::string& missing() const { return missing_; }
  // Null where there is none. F is the function's type.
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(address(name));
  }

 private:
  void* address(const char* name) const;

  void* handle_ = nullptr;
  std::string missing_;
};

}  // namespace weft
