#include "renzan/data/batch_loader.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"

namespace renzan {

struct BatchLoader::Impl {
  struct Slot {
    Batch batch;
    std::exception_ptr error;
  };

  const Dataset& dataset;
  const Options options;
  const int64_t steps_per_epoch;

  // Slot i % slots.size() holds the i-th batch. There are two slots more than `prefetch`: those in
  // use.
  std::vector<Slot> slots;
  std::mutex mutex;
  std::condition_variable changed;
  int64_t produced = 0, taken = 0;
  bool stop = false;
  std::thread thread;

  // Used by the reader thread only.
  std::optional<SampleOrder> order;
  int64_t order_epoch = -1;
  std::vector<int64_t> rows;

  Impl(const Dataset& data, const Options& opts)
      : dataset(data),
        options(opts),
        steps_per_epoch(StepsPerEpoch(opts.row_end - opts.row_begin, opts.global_batch)),
        slots(static_cast<size_t>(opts.prefetch) + 2) {}

  Slot& SlotOf(int64_t index) { return slots[static_cast<size_t>(index) % slots.size()]; }

  void Load(int64_t step, Batch* batch) {
    const int64_t epoch = step / steps_per_epoch;
    if (epoch != order_epoch) {
      order.emplace(options.seed, epoch, options.row_begin, options.row_end, options.shuffle);
      order_epoch = epoch;
    }
    const int64_t first = step % steps_per_epoch * options.global_batch;
    rows.clear();
    for (int64_t i = options.slice_begin; i < options.slice_end; ++i)
      rows.push_back(order->Row(first + i));
    dataset.Read(rows, batch);
  }

  void Run() {
    NameTraceThread("batch reader");
    for (int64_t index = 0; index < options.num_steps; ++index) {
      {
        std::unique_lock lock(mutex);
        // `taken` includes the two batches in use, which must not be overwritten.
        changed.wait(lock, [&] { return stop || index - taken < options.prefetch; });
        if (stop) return;
      }
      Slot& slot = SlotOf(index);
      try {
        const TraceSpan span("read batch");
        Load(options.first_step + index, &slot.batch);
      } catch (...) {
        slot.error = std::current_exception();
      }
      const bool failed = slot.error != nullptr;
      {
        std::lock_guard lock(mutex);
        produced = index + 1;
      }
      changed.notify_all();
      if (failed) return;
    }
  }
};

int64_t StepsPerEpoch(int64_t rows, int64_t global_batch) {
  CHECK(global_batch > 0);
  if (rows < global_batch)
    Fail(ErrorCode::kConfig,
         "{} rows do not fill one batch of {}: use a smaller batch or more data", rows,
         global_batch);
  return rows / global_batch;
}

BatchLoader::BatchLoader(const Dataset& dataset, const Options& options) {
  CHECK(options.prefetch >= 1 && options.first_step >= 0 && options.num_steps >= 0);
  CHECK(options.row_begin >= 0 && options.row_end <= dataset.num_rows());
  CHECK(options.slice_begin >= 0 && options.slice_begin <= options.slice_end &&
        options.slice_end <= options.global_batch);
  impl_ = std::make_unique<Impl>(dataset, options);
  try {
    impl_->thread = std::thread([this] { impl_->Run(); });
  } catch (const std::system_error& error) {
    Fail(ErrorCode::kOsError, "cannot start the thread that reads batches: {}", error.what());
  }
}

BatchLoader::~BatchLoader() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

const Batch& BatchLoader::Next() {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  CHECK_MSG(impl.taken < impl.options.num_steps, "Next() was called more than num_steps times");
  impl.changed.wait(lock, [&] { return impl.produced > impl.taken; });
  Impl::Slot& slot = impl.SlotOf(impl.taken);
  if (slot.error) std::rethrow_exception(slot.error);
  ++impl.taken;
  lock.unlock();
  impl.changed.notify_all();
  return slot.batch;
}

}  // namespace renzan
