// SmallVector<T, N>: a growable array of plain values whose first N live inside it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>

namespace weft {

template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>, "elements are moved with memcpy");
  static_assert(alignof(T) <= alignof(std::max_align_t));

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() = default;
  explicit SmallVector(size_t count, T value = T()) { resize(count, value); }
  SmallVector(std::initializer_list<T> list) { append({list.begin(), list.size()}); }
  explicit SmallVector(std::span<const T> from) { append(from); }
  SmallVector(const SmallVector& other) { append(other); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) release(), take(other);
    return *this;
  }
  ~SmallVector() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  operator std::span<const T>() const { return {data_, size_}; }  // NOLINT: a view of itself
  operator std::span<T>() { return {data_, size_}; }              // NOLINT

  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    new (data_ + size_++) T(value);
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }
  void resize(size_t count, T value = T()) {
    reserve(count);
    for (size_t i = size_; i < count; ++i) new (data_ + i) T(value);
    size_ = count;
  }
  // `from` may lie inside this vector.
  void append(std::span<const T> from) {
    if (from.empty()) return;
    const size_t old = size_, count = from.size();
    if (old + count > capacity_) {
      SmallVector bigger;
      bigger.grow(old + count);
      if (old != 0) std::memcpy(static_cast<void*>(bigger.data_), data_, old * sizeof(T));
      std::memcpy(static_cast<void*>(bigger.data_ + old), from.data(), from.size_bytes());
      release();
      take(bigger);
    } else {
      std::memmove(static_cast<void*>(data_ + old), from.data(), from.size_bytes());
    }
    size_ = old + count;
  }
  void assign(std::span<const T> from) {
    SmallVector fresh(from);
    release();
    take(fresh);
  }
  void insert(size_t at, T value) {
    push_back(value);
    std::memmove(static_cast<void*>(data_ + at + 1), data_ + at, (size_ - 1 - at) * sizeof(T));
    data_[at] = value;
  }
  void erase(size_t at) {
    std::memmove(static_cast<void*>(data_ + at), data_ + at + 1, (size_ - 1 - at) * sizeof(T));
    --size_;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i) {
      if (!(a.data_[i] == b.data_[i])) return false;
    }
    return true;
  }

 private:
  T* own() { return reinterpret_cast<T*>(inline_); }

  void grow(size_t least) {
    const size_t count = least > capacity_ * 2 ? least : capacity_ * 2;
    T* bigger = static_cast<T*>(std::malloc(count * sizeof(T)));
    if (bigger == nullptr) throw std::bad_alloc();
    if (size_ != 0) std::memcpy(static_cast<void*>(bigger), data_, size_ * sizeof(T));
    if (data_ != own()) std::free(data_);
    data_ = bigger;
    capacity_ = count;
  }
  void release() {
    if (data_ != own()) std::free(data_);
    data_ = own();
    capacity_ = N;
    size_ = 0;
  }
  // Steals the other's elements; this one is empty before.
  void take(SmallVector& other) {
    if (other.data_ == other.own()) {
      if (other.size_ != 0)
        std::memcpy(static_cast<void*>(data_), other.data_, other.size_ * sizeof(T));
      size_ = other.size_;
    } else {
      data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_;
      other.data_ = other.own(), other.capacity_ = N;
    }
    other.size_ = 0;
  }

  alignas(T) unsigned char inline_[N * sizeof(T)];
  T* data_ = reinterpret_cast<T*>(inline_);
  size_t size_ = 0, capacity_ = N;
};

}  // namespace weft
