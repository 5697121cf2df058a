#include "renzan/data/batch_loader.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/trace.h"
#include "renzan/data/prefetcher.h"

namespace renzan {
namespace {

RowsOfBatch RowsOfSteps(const BatchLoaderOptions& options) {
  CHECK(options.first_step >= 0 && options.row_begin >= 0);
  CHECK(options.slice_begin >= 0 && options.slice_begin <= options.slice_end &&
        options.slice_end <= options.global_batch);
  const int64_t per_epoch =
      StepsPerEpoch(options.row_end - options.row_begin, options.global_batch);
  // The order of the last epoch that was asked for.
  return [options, per_epoch, order = std::optional<SampleOrder>(), order_epoch = int64_t{-1}](
             int64_t index, std::vector<int64_t>* rows) mutable {
    const int64_t step = options.first_step + index, epoch = step / per_epoch;
    if (epoch != order_epoch) {
      order.emplace(options.seed, epoch, options.row_begin, options.row_end, options.shuffle);
      order_epoch = epoch;
    }
    const int64_t first = step % per_epoch * options.global_batch;
    rows->clear();
    for (int64_t i = options.slice_begin; i < options.slice_end; ++i)
      rows->push_back(order->Row(first + i));
  };
}

}  // namespace

struct BatchLoader::Impl {
  struct Slot {
    Batch batch;
    std::exception_ptr error;
  };

  const Dataset& dataset;
  const int64_t num_batches;
  const RowsOfBatch rows_of_batch;
  const int prefetch;

  // Slot i % slots.size() holds the i-th batch. There are two slots more than `prefetch`: those in
  // use.
  std::vector<Slot> slots;
  std::mutex mutex;
  std::condition_variable changed;
  int64_t produced = 0, taken = 0;
  bool stop = false;
  std::unique_ptr<Prefetcher> prefetcher;  // only for a dataset in a store
  int64_t first_step = 0;
  std::thread thread;

  std::vector<int64_t> rows;  // used by the reader thread only

  Impl(const Dataset& data, int64_t num, RowsOfBatch rows_of, int ahead)
      : dataset(data),
        num_batches(num),
        rows_of_batch(std::move(rows_of)),
        prefetch(ahead),
        slots(static_cast<size_t>(ahead) + 2) {}

  Slot& SlotOf(int64_t index) { return slots[static_cast<size_t>(index) % slots.size()]; }

  void Run() {
    NameTraceThread("batch reader");
    for (int64_t index = 0; index < num_batches; ++index) {
      {
        std::unique_lock lock(mutex);
        // `taken` includes the two batches in use, which must not be overwritten.
        changed.wait(lock, [&] { return stop || index - taken < prefetch; });
        if (stop) return;
      }
      Slot& slot = SlotOf(index);
      try {
        const TraceSpan span("read batch");
        if (prefetcher) prefetcher->AtStep(first_step + index);
        rows_of_batch(index, &rows);
        dataset.Read(rows, &slot.batch);
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

BatchLoader::BatchLoader(const Dataset& dataset, const Options& options)
    : impl_(std::make_unique<Impl>(dataset, options.num_steps, RowsOfSteps(options),
                                   options.prefetch)) {
  CHECK(options.row_end <= dataset.num_rows());
  impl_->first_step = options.first_step;
  if (dataset.cache() != nullptr)
    impl_->prefetcher = std::make_unique<Prefetcher>(*dataset.cache(), options);
  Start();
}

BatchLoader::BatchLoader(const Dataset& dataset, int64_t num_batches, RowsOfBatch rows,
                         int prefetch)
    : impl_(std::make_unique<Impl>(dataset, num_batches, std::move(rows), prefetch)) {
  Start();
}

void BatchLoader::Start() {
  CHECK(impl_->prefetch >= 1 && impl_->num_batches >= 0);
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
  CHECK_MSG(impl.taken < impl.num_batches, "Next() was called more often than there are batches");
  impl.changed.wait(lock, [&] { return impl.produced > impl.taken; });
  Impl::Slot& slot = impl.SlotOf(impl.taken);
  if (slot.error) std::rethrow_exception(slot.error);
  ++impl.taken;
  lock.unlock();
  impl.changed.notify_all();
  return slot.batch;
}

}  // namespace renzan
