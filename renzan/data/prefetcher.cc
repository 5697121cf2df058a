#include "renzan/data/prefetcher.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/base/trace.h"
#include "renzan/storage/in_parallel.h"

namespace renzan {
namespace {

// How long a window lasts in the cache's time, whatever it takes: only the order matters, except
// between runs that share a cache.
constexpr int64_t kSecondsPerWindow = 10;

}  // namespace

Prefetcher::Prefetcher(DatasetCache& cache, const BatchLoaderOptions& options)
    : cache_(cache),
      options_(options),
      steps_per_epoch_(StepsPerEpoch(options.row_end - options.row_begin, options.global_batch)),
      started_at_(SystemClock().UnixSeconds()) {
  windows_per_epoch_ = OrderOf(options_.first_step / steps_per_epoch_).num_windows();
  now_ = WindowOf(options_.first_step);
  last_window_ = WindowOf(options_.first_step + std::max<int64_t>(options_.num_steps, 1) - 1);
  horizon_ = HorizonOf(options_.first_step);
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    Fail(ErrorCode::kOsError, "cannot start the thread that fetches data ahead: {}", error.what());
  }
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::AtStep(int64_t step) {
  {
    const std::lock_guard lock(mutex_);
    now_ = WindowOf(step);
    horizon_ = HorizonOf(step);
  }
  changed_.notify_all();
}

int64_t Prefetcher::WindowRows() const {
  return options_.shuffle.block_rows * options_.shuffle.window_blocks;
}

int64_t Prefetcher::WindowOf(int64_t step, int64_t sample) const {
  const int64_t position = step % steps_per_epoch_ * options_.global_batch + sample;
  return step / steps_per_epoch_ * windows_per_epoch_ + position / WindowRows();
}

// The last window to fetch when a step is read. Fetching too early evicts something that is needed
// later; fetching just in time can evict data that has been read instead. So if not everything
// fits, the limit is the last window needed by steps that begin while one window's worth of samples
// is read. See P. Cao, E. Felten, A. Karlin, K. Li, "A study of integrated prefetching and caching
// strategies", 1995.
int64_t Prefetcher::HorizonOf(int64_t step) const {
  if (cache_.cache().FitsWhole()) return last_window_;
  const int64_t batch = options_.global_batch;
  const int64_t steps = (WindowRows() + batch - 1) / batch;
  return std::min(last_window_, WindowOf(step + steps, batch - 1));
}

uint32_t Prefetcher::TimeOf(int64_t window) const {
  const double time = started_at_ + static_cast<double>(window * kSecondsPerWindow);
  return static_cast<uint32_t>(std::min(time, static_cast<double>(BlockCache::kNever - 1)));
}

const SampleOrder& Prefetcher::OrderOf(int64_t epoch) {
  const size_t slot = static_cast<size_t>(epoch % 2);
  if (epochs_[slot] != epoch) {
    orders_[slot].emplace(options_.seed, epoch, options_.row_begin, options_.row_end,
                          options_.shuffle);
    epochs_[slot] = epoch;
  }
  return *orders_[slot];
}

// When the first window after `after` that needs the block is read.
uint32_t Prefetcher::NextUse(int64_t block, int64_t after) {
  const int64_t epoch = after / windows_per_epoch_;
  for (int64_t e = epoch; e <= epoch + 1; ++e) {
    const int64_t window = e * windows_per_epoch_ + OrderOf(e).WindowOfBlock(block);
    if (window > last_window_) return BlockCache::kNever;
    if (window > after) return TimeOf(window);
  }
  return BlockCache::kNever;
}

bool Prefetcher::Fetch(int64_t window) {
  const SampleOrder& order = OrderOf(window / windows_per_epoch_);
  std::vector<int64_t> blocks = order.BlocksOfWindow(window % windows_per_epoch_);
  // Workers begin at different blocks, so that they do not all wait for the same ones.
  const int64_t first = std::ssize(blocks) * options_.slice_begin / options_.global_batch;
  std::rotate(blocks.begin(), blocks.begin() + first, blocks.end());
  std::atomic<bool> has_room{true};
  const auto stopped = [&] {
    const std::lock_guard lock(mutex_);
    return stop_;
  };
  InParallel(
      blocks.size(),
      [&](size_t i) {
        if (!has_room || stopped()) return;
        const auto [begin, end] = order.RowsOfBlock(blocks[i]);
        if (!cache_.PrefetchRows(begin, end, TimeOf(window))) has_room = false;
      },
      cache_.cache().chunks_at_once());
  return has_room;
}

// The window has been read, and window `now` is read next.
void Prefetcher::Release(int64_t window, int64_t now) {
  const SampleOrder& order = OrderOf(window / windows_per_epoch_);
  for (const int64_t block : order.BlocksOfWindow(window % windows_per_epoch_)) {
    const auto [first, last] = order.RowsOfBlock(block);
    cache_.SetNextUse(first, last, [&](int64_t begin, int64_t end) {
      // A large chunk holds so many blocks that one of them is needed soon.
      if (cache_.cache().FitsWhole()) return TimeOf(now + 1);
      uint32_t next = BlockCache::kNever;
      const int64_t from = std::max(begin, options_.row_begin);
      const int64_t to = std::min(end, options_.row_end);
      if (from >= to) return next;
      for (int64_t other = order.BlockOf(from); other <= order.BlockOf(to - 1); ++other)
        next = std::min(next, NextUse(other, now - 1));
      return next;
    });
  }
}

void Prefetcher::Run() {
  NameTraceThread("prefetcher");
  int64_t released = now_;  // all windows before it
  int64_t next = now_;
  try {
    while (true) {
      int64_t now, horizon;
      {
        const std::lock_guard lock(mutex_);
        if (stop_) return;
        now = now_;
        horizon = horizon_;
      }
      for (; released < now; ++released) Release(released, now);
      next = std::max(next, now);
      if (next <= horizon && Fetch(next)) {
        ++next;
        continue;
      }
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || now_ != now || horizon_ != horizon; });
    }
  } catch (const std::exception& error) {
    // The reader will hit the same error, and there it matters.
    LogWarning("reading ahead has stopped: {}", error.what());
  }
}

}  // namespace renzan
