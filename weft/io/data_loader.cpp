#include "weft/io/data_loader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/fork.h"
#include "weft/base/hash.h"
#include "weft/base/int128.h"
#include "weft/base/process.h"

namespace weft {

namespace {

// Those rows, one after the other.
HostArray rows_of_array(const HostArray& array, const std::vector<int64_t>& rows) {
  const auto width = array.bytes.size() / static_cast<size_t>(array.shape[0]);
  std::vector<std::byte> bytes(rows.size() * width);
  for (size_t i = 0; i < rows.size() && width > 0; ++i) {
    std::memcpy(&bytes[i * width], &array.bytes[static_cast<size_t>(rows[i]) * width], width);
  }
  std::vector<int64_t> shape = array.shape;
  shape[0] = static_cast<int64_t>(rows.size());
  return HostArray::owned(array.dtype, std::move(shape), std::move(bytes));
}

int64_t rows_in(const std::vector<HostArray>& arrays) {
  if (arrays.empty()) fail("DataLoader", "there are no arrays");
  for (const HostArray& array : arrays) {
    if (!array.shape.empty() && array.shape[0] == arrays[0].shape[0]) continue;
    fail("DataLoader", "arrays of shapes {} and {}: the first axes, the rows, must be equal",
         shape_text(arrays[0].shape), shape_text(array.shape));
  }
  return arrays[0].shape[0];
}

}  // namespace

DataLoader::DataLoader(int64_t rows, Fetch fetch, const LoaderOptions& options, CallSite at)
    : rows_(rows), fetch_(std::move(fetch)), options_(options) {
  const CallSiteScope site(at);
  if (rows < 1) fail("DataLoader", "the data set has {} rows; it must have some", rows);
  if (options.batch < 1) fail("DataLoader", "a batch must be 1 at least, not {}", options.batch);
  if (options.prefetch < 0) {
    fail("DataLoader", "prefetch must be 0 at least, not {}", options.prefetch);
  }
  if (options.drop_last && rows < options.batch) {
    fail("DataLoader", "a batch of {} is more than all {} rows; use a smaller one", options.batch,
         rows);
  }
}

DataLoader::DataLoader(std::vector<HostArray> arrays, const LoaderOptions& options, CallSite at)
    : DataLoader(
          rows_in(arrays),
          [arrays](const std::vector<int64_t>& rows) {
            std::vector<HostArray> taken;
            for (const HostArray& array : arrays) taken.push_back(rows_of_array(array, rows));
            return taken;
          },
          options, at) {}

int64_t DataLoader::batches() const {
  return options_.drop_last ? rows_ / options_.batch
                            : (rows_ + options_.batch - 1) / options_.batch;
}

// Fisher and Yates on a generator whose numbers the C++ standard fixes; std::shuffle's are the
// library's own.
std::vector<int64_t> DataLoader::order(int64_t epoch) const {
  std::vector<int64_t> order(static_cast<size_t>(rows_));
  std::iota(order.begin(), order.end(), 0);
  if (!options_.shuffle) return order;
  std::mt19937_64 random(hash_combine(options_.seed, static_cast<uint64_t>(epoch)));
  for (size_t left = order.size(); left > 1; --left) {
    const auto chosen =
        static_cast<size_t>(static_cast<Int128>(random() >> 1) * static_cast<Int128>(left) >> 63);
    std::swap(order[left - 1], order[chosen]);
  }
  return order;
}

std::vector<int64_t> DataLoader::rows_of(const std::vector<int64_t>& order, int64_t batch) const {
  const auto begin = order.begin() + batch * options_.batch;
  const int64_t count = std::min(options_.batch, rows_ - batch * options_.batch);
  return {begin, begin + count};
}

DataLoader::Epoch DataLoader::epoch(int64_t epoch, int64_t first_batch) const {
  return Epoch(*this, epoch, first_batch);
}

// A queue between the thread that fetches and the one that takes. It holds its own copies, so that
// an Epoch may move.
struct DataLoader::Epoch::Ahead {
  struct Item {
    std::vector<HostArray> arrays;
    std::exception_ptr error;
  };

  Ahead(const DataLoader& loader, std::vector<int64_t> order, int64_t first)
      : thread([this, &loader, order = std::move(order), first] { fill(loader, order, first); }) {}
  /// False in a child of fork(), which has none of its parent's threads.
  bool is_here() const { return process == process_id(); }
  ~Ahead() {
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    changed.notify_all();
    thread.join();
  }

  void fill(const DataLoader& loader, const std::vector<int64_t>& order, int64_t first) {
    for (int64_t batch = first; batch < loader.batches(); ++batch) {
      Item item;
      try {
        item.arrays = loader.fetch_(loader.rows_of(order, batch));
      } catch (...) {
        item.error = std::current_exception();
      }
      const bool failed = item.error != nullptr;
      if (!put(std::move(item), static_cast<size_t>(loader.options_.prefetch)) || failed) return;
    }
  }

  bool put(Item item, size_t most) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stopped || queue.size() < most; });
    if (stopped) return false;
    queue.push_back(std::move(item));
    changed.notify_all();
    return true;
  }

  Item take() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !queue.empty(); });
    // An error is the last there is; it stays for whoever asks again.
    if (queue.front().error) return queue.front();
    Item item = std::move(queue.front());
    queue.pop_front();
    changed.notify_all();
    return item;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> queue;
  bool stopped = false;
  const int64_t process = process_id();
  std::thread thread;  // last: it uses all of the above
};

DataLoader::Epoch::Epoch(const DataLoader& loader, int64_t epoch, int64_t first_batch)
    : loader_(&loader), order_(loader.order(epoch)), next_batch_(first_batch) {
  if (first_batch < 0 || first_batch > loader.batches()) {
    fail("DataLoader", "batch {} of an epoch of {}", first_batch, loader.batches());
  }
  if (loader.options_.prefetch > 0) ahead_ = std::make_unique<Ahead>(loader, order_, first_batch);
}

DataLoader::Epoch::Epoch(Epoch&&) noexcept = default;
DataLoader::Epoch::~Epoch() {
  // Nobody could wait for a thread that is not here: it is left to the parent.
  if (ahead_ && !ahead_->is_here()) static_cast<void>(ahead_.release());
}

std::vector<HostArray> DataLoader::Epoch::fetch(int64_t batch) const {
  const IdleScope idle;  // whoever fetches may be about to fork
  if (!ahead_ || !ahead_->is_here()) return loader_->fetch_(loader_->rows_of(order_, batch));
  Ahead::Item item = ahead_->take();
  if (item.error) std::rethrow_exception(item.error);
  return std::move(item.arrays);
}

std::optional<Batch> DataLoader::Epoch::next() {
  if (next_batch_ == loader_->batches()) return std::nullopt;
  const std::vector<HostArray> arrays = fetch(next_batch_);
  ++next_batch_;
  Batch batch;
  for (const HostArray& array : arrays) batch.push_back(tensor_of(array));
  return batch;
}

}  // namespace weft
