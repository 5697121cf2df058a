#pragma once

// What a cycle has already found not to fit. Room only shrinks while the line is walked, so a gang
// of the same request that is as large or larger does not fit either; this is what makes thousands
// of jobs that cannot start cheap. Not thread-safe.

#include <algorithm>
#include <limits>
#include <map>

namespace renzan::cluster {

// By a key, the smallest number of workers that is known not to fit.
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
