#pragma once

// Fetches what training reads next from a store into the dataset's cache, and tells the cache when
// each part is needed again. Both are known exactly, down to the window, whose blocks are needed
// together, because the order of samples is a keyed permutation (sample_order.h).
//
// Every worker does this for all workers of the run: they need the same windows at the same time.

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "renzan/data/batch_loader.h"
#include "renzan/data/dataset/dataset_cache.h"

namespace renzan {

class Prefetcher {
 public:
  // Both outlive it.
  Prefetcher(DatasetCache& cache, const BatchLoaderOptions& options);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // `step` is the first one that has not been read; it never goes back.
  void AtStep(int64_t step);

 private:
  // Windows are numbered through all epochs.
  int64_t WindowRows() const;
  int64_t WindowOf(int64_t step, int64_t sample = 0) const;
  int64_t HorizonOf(int64_t step) const;
  uint32_t TimeOf(int64_t window) const;
  const SampleOrder& OrderOf(int64_t epoch);
  void Run();
  bool Fetch(int64_t window);
  void Release(int64_t window, int64_t now);
  uint32_t NextUse(int64_t block, int64_t after);

  DatasetCache& cache_;
  const BatchLoaderOptions options_;
  const int64_t steps_per_epoch_;
  const double started_at_;  // seconds since 1970
  // Of the epoch being read and the next one.
  std::optional<SampleOrder> orders_[2];
  int64_t epochs_[2] = {-1, -1};
  int64_t windows_per_epoch_ = 0, last_window_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t now_ = 0;      // the window being read
  int64_t horizon_ = 0;  // the last window to fetch meanwhile
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace renzan
