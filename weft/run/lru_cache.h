// LruCache: results by the structure they were made from. The key's node is rooted while its entry
// lives, so equal structure means the same pointer.
#pragma once

#include <cstdint>
#include <iterator>
#include <list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/small_vector.h"
#include "weft/graph/graph.h"

namespace weft {

struct CacheKey {
  NodeRef root;                  ///< in the cache's graph
  SmallVector<int64_t, 8> more;  ///< what else the result depends on

  friend bool operator==(const CacheKey&, const CacheKey&) = default;
  struct Hash {
    size_t operator()(const CacheKey& k) const {
      return hash_bytes(k.more.data(), k.more.size() * sizeof(int64_t), k.root->hash);
    }
  };
};

struct CacheCounts {
  int64_t entries = 0, bytes = 0, hits = 0, misses = 0, evictions = 0;
};

/// What a key keeps alive in its graph, about: nodes take 140 bytes, and entries share some.
inline size_t key_bytes(const CacheKey& key) { return 128 * Toposort(key.root).size(); }

/// Bounded twice: by entries, and by what they hold, as a process that goes on making new programs
/// must not grow with them. The newest entry stays, however large. Not locked. V is cheap to copy
/// (of shared_ptrs).
template <class V>
class LruCache {
 public:
  LruCache(Graph& graph, size_t most, size_t most_bytes)
      : graph_(graph), most_(most), most_bytes_(most_bytes) {}
  LruCache(const LruCache&) = delete;
  LruCache& operator=(const LruCache&) = delete;
  ~LruCache() { clear(); }

  /// V() where there is none.
  V find(const CacheKey& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) {
      ++counts_.misses;
      return V();
    }
    ++counts_.hits;
    entries_.splice(entries_.begin(), entries_, at->second);
    return at->second->value;
  }
  /// `bytes`: about what the entry keeps alive.
  void insert(CacheKey key, V value, size_t bytes) {
    graph_.retain(key.root);
    entries_.push_front({key, std::move(value), bytes});
    index_.emplace(std::move(key), entries_.begin());
    bytes_ += bytes;
    while (entries_.size() > most_ || (bytes_ > most_bytes_ && entries_.size() > 1)) drop_oldest();
  }
  /// Of a key, its value and its bytes.
  template <class F>
  void erase_if(F goes) {
    for (auto at = entries_.begin(); at != entries_.end();) {
      const auto entry = at++;
      if (goes(entry->key, entry->value, entry->bytes)) erase(entry);
    }
  }
  void clear() {
    while (!entries_.empty()) drop_oldest();
  }
  CacheCounts counts() const {
    CacheCounts c = counts_;
    c.entries = static_cast<int64_t>(entries_.size());
    c.bytes = static_cast<int64_t>(bytes_);
    return c;
  }

 private:
  struct Entry {
    CacheKey key;
    V value;
    size_t bytes;
  };
  using Entries = std::list<Entry>;

  void drop_oldest() { erase(std::prev(entries_.end())); }
  void erase(typename Entries::iterator entry) {
    NodeRef root = entry->key.root;
    bytes_ -= entry->bytes;
    index_.erase(entry->key);
    entries_.erase(entry);
    graph_.release(root);
    ++counts_.evictions;
  }

  Graph& graph_;
  size_t most_, most_bytes_, bytes_ = 0;
  Entries entries_;  // newest first
  std::unordered_map<CacheKey, typename Entries::iterator, CacheKey::Hash> index_;
  CacheCounts counts_;
};

}  // namespace weft
