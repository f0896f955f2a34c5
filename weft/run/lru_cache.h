// LruCache: results by the structure they were made from. The key's node is rooted while its entry
// lives, so equal structure means the same pointer.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/hash.h"
#include "weft/graph/graph.h"

namespace weft {

struct CacheKey {
  NodeRef root;               ///< in the cache's graph
  std::vector<int64_t> more;  ///< what else the result depends on

  friend bool operator==(const CacheKey&, const CacheKey&) = default;
  struct Hash {
    size_t operator()(const CacheKey& k) const {
      return hash_bytes(k.more.data(), k.more.size() * sizeof(int64_t), k.root->hash);
    }
  };
};

struct CacheCounts {
  int64_t entries = 0, hits = 0, misses = 0, evictions = 0;
};

/// Not locked. V is cheap to copy (a shared_ptr).
template <class V>
class LruCache {
 public:
  LruCache(Graph& graph, size_t most) : graph_(graph), most_(most) {}
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
    return at->second->second;
  }
  void insert(CacheKey key, V value) {
    graph_.retain(key.root);
    entries_.emplace_front(key, std::move(value));
    index_.emplace(std::move(key), entries_.begin());
    while (entries_.size() > most_) drop_oldest();
  }
  void clear() {
    while (!entries_.empty()) drop_oldest();
  }
  CacheCounts counts() const {
    CacheCounts c = counts_;
    c.entries = static_cast<int64_t>(entries_.size());
    return c;
  }

 private:
  void drop_oldest() {
    const CacheKey& key = entries_.back().first;
    NodeRef root = key.root;
    index_.erase(key);
    entries_.pop_back();
    graph_.release(root);
    ++counts_.evictions;
  }

  using Entries = std::list<std::pair<CacheKey, V>>;
  Graph& graph_;
  size_t most_;
  Entries entries_;  // newest first
  std::unordered_map<CacheKey, typename Entries::iterator, CacheKey::Hash> index_;
  CacheCounts counts_;
};

}  // namespace weft
