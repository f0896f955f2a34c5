// DataLoader: batches of a data set, shuffled and fetched ahead by a thread.
//
//   DataLoader loader({set.images, set.labels}, {.batch = 64, .shuffle = true, .seed = 1});
//   for (int64_t epoch = 0; epoch < 10; ++epoch) {
//     for (const Batch& batch : loader.epoch(epoch)) step(batch[0], batch[1]);
//   }
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weft/io/tensors.h"

namespace weft {

struct LoaderOptions {
  int64_t batch = 32;
  bool shuffle = false;
  uint64_t seed = 0;       // the order of an epoch depends on this and its number alone
  bool drop_last = false;  // leaves out a last batch that is smaller
  int64_t prefetch = 2;    // batches that are fetched ahead; 0: none, and no thread
};

// One tensor for each array of the data set, with the batch as first axis.
using Batch = std::vector<Tensor>;

class DataLoader {
 public:
  // The rows of these numbers, in this order, as arrays. Called by one thread at a time, another
  // than the one that takes batches unless prefetch is 0: it must not use tensors. What it throws
  // is thrown by next().
  using Fetch = std::function<std::vector<HostArray>(const std::vector<int64_t>& rows)>;

  DataLoader(int64_t rows, Fetch fetch, const LoaderOptions& options = {},
             CallSite at = CallSite::here());
  // Rows of arrays that have the same first axis.
  explicit DataLoader(std::vector<HostArray> arrays, const LoaderOptions& options = {},
                      CallSite at = CallSite::here());

  int64_t batches() const;  // in each epoch
  // The numbers of all rows in an epoch's order.
  std::vector<int64_t> order(int64_t epoch) const;

  class Epoch;
  // From a batch on that is not the first where a training is resumed. Must not outlive the loader.
  Epoch epoch(int64_t epoch, int64_t first_batch = 0) const;

 private:
  std::vector<int64_t> rows_of(const std::vector<int64_t>& order, int64_t batch) const;

  int64_t rows_;
  Fetch fetch_;
  LoaderOptions options_;
};

class DataLoader::Epoch {
 public:
  Epoch(const DataLoader& loader, int64_t epoch, int64_t first_batch);
  Epoch(Epoch&&) noexcept;
  ~Epoch();  // stops fetching

  // The next batch on the current context's default device; nothing after the last.
  std::optional<Batch> next();

  class Iterator {
   public:
    explicit Iterator(Epoch* epoch) : epoch_(epoch) { ++*this; }
    const Batch& operator*() const { return *batch_; }
    Iterator& operator++() {
      batch_ = epoch_->next();
      return *this;
    }
    friend bool operator!=(const Iterator& a, std::nullptr_t) { return a.batch_.has_value(); }

   private:
    Epoch* epoch_;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(this); }
  std::nullptr_t end() const { return nullptr; }

 private:
  struct Ahead;  // the thread and its queue
  std::vector<HostArray> fetch(int64_t batch) const;

  const DataLoader* loader_;
  std::vector<int64_t> order_;
  int64_t next_batch_;
  std::unique_ptr<Ahead> ahead_;
};

}  // namespace weft
