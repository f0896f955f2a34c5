// CellRef: a std::shared_ptr<TensorCell> for a header that does without <memory>, which takes a
// compiler longer to read than all of weft's own front door.
#pragma once

namespace weft {

struct TensorCell;

class CellRef {
 public:
  CellRef() noexcept;
  CellRef(const CellRef&) noexcept;
  CellRef(CellRef&&) noexcept;
  CellRef& operator=(const CellRef&) noexcept;
  CellRef& operator=(CellRef&&) noexcept;
  ~CellRef();

  TensorCell* get() const noexcept;
  TensorCell* operator->() const noexcept { return get(); }
  TensorCell& operator*() const noexcept { return *get(); }
  explicit operator bool() const noexcept { return get() != nullptr; }
  friend struct TensorAccess;

 private:
  alignas(void*) unsigned char shared_[2 * sizeof(void*)];
};

}  // namespace weft
