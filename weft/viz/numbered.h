// Numbered: things in the order of their numbers, of which stretches may be missing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft::viz {

/// A recording says what number its next thing has; where that is higher than it should be, a block
/// is lost. Nothing is kept for what is missing, however much that is.
template <class T>
class Numbered {
 public:
  uint64_t next() const { return next_; }
  /// False where that number is below one that is there.
  bool skip_to(uint64_t number) {
    if (number < next_) return false;
    if (number > next_) parts_.push_back({number, items_.size()});
    next_ = number;
    return true;
  }
  void add(T item) {
    items_.push_back(std::move(item));
    ++next_;
  }
  /// Null where it is missing.
  const T* find(uint64_t number) const {
    if (number >= next_) return nullptr;
    const auto after = std::ranges::upper_bound(parts_, number, {}, &Part::number);
    const Part part = after == parts_.begin() ? Part{0, 0} : *(after - 1);
    const size_t at = part.at + static_cast<size_t>(number - part.number);
    const size_t end = after == parts_.end() ? items_.size() : after->at;
    return at < end ? &items_[at] : nullptr;
  }
  const std::vector<T>& items() const { return items_; }

 private:
  struct Part {
    uint64_t number;
    size_t at;
  };
  std::vector<Part> parts_;
  std::vector<T> items_;
  uint64_t next_ = 0;
};

}  // namespace weft::viz
