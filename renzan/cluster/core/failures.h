#pragma once

// Remembers what did not fit earlier in a scheduling cycle. Free resources only shrink while the
// pending queue is processed, so an equal or larger gang with the same worker request cannot fit
// either. This keeps thousands of jobs that cannot start cheap. Not thread-safe.

#include <algorithm>
#include <limits>
#include <map>

namespace renzan::cluster {

// For each key, the smallest number of workers known not to fit.
template <typename Key>
class Failures {
 public:
  bool Known(const Key& key, int workers) const {
    const auto at = smallest_.find(key);
    return at != smallest_.end() && workers >= at->second;
  }
  void Add(const Key& key, int workers) {
    const auto at = smallest_.try_emplace(key, workers).first;
    at->second = std::min(at->second, workers);
  }
  void Clear() { smallest_.clear(); }

 private:
  std::map<Key, int> smallest_;
};

}  // namespace renzan::cluster
