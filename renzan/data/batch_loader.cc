#include "renzan/data/batch_loader.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/thread_pool.h"
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
  // Keeps the order of the epoch that was last requested.
  return [options, per_epoch, order = std::optional<SampleOrder>(), order_epoch = int64_t{-1}](
             int64_t index, std::vector<int64_t>* rows) mutable {
    const int64_t step = options.first_step + index, epoch = step / per_epoch;
    if (epoch != order_epoch) {
      order.emplace(options.seed, epoch, options.row_begin, options.row_end, options.shuffle);
      order_epoch = epoch;
    }
    const int64_t first = step % per_epoch * options.global_batch;
    rows->clear();
    order->AppendRows(first + options.slice_begin, options.slice_end - options.slice_begin, rows);
  };
}

// If a cache does not have room for everything, batches read far ahead would evict what is needed
// before them.
int ReadersOf(const Dataset& dataset, const BatchLoaderOptions& options) {
  const bool fits = dataset.cache() == nullptr || dataset.cache()->cache().FitsWhole();
  return fits ? options.readers : 1;
}

}  // namespace

struct BatchLoader::Impl {
  struct Slot {
    Batch batch;
    std::exception_ptr error;
    bool ready = false;
  };

  const Dataset& dataset;
  const int64_t num_batches;
  const RowsOfBatch rows_of_batch;
  const ChangeBatch change_batch;
  const int readers;

  // Slot i % slots.size() holds the i-th batch.
  std::vector<Slot> slots;
  std::mutex mutex;
  std::condition_variable changed;
  // How many batches readers have begun, and how many Next() has returned.
  int64_t claimed = 0, taken = 0;
  bool stop = false;
  std::unique_ptr<Prefetcher> prefetcher;  // only for a dataset in a store
  int64_t first_step = 0;
  std::vector<std::thread> threads;

  Impl(const Dataset& data, int64_t num, RowsOfBatch rows_of, int num_readers, ChangeBatch change)
      : dataset(data),
        num_batches(num),
        rows_of_batch(std::move(rows_of)),
        change_batch(std::move(change)),
        readers(num_readers),
        slots(static_cast<size_t>(SlotsFor(num_readers))) {}

  Slot& SlotOf(int64_t index) { return slots[static_cast<size_t>(index) % slots.size()]; }

  // The next batch for a reader, or -1 if there is none.
  int64_t Claim() {
    std::unique_lock lock(mutex);
    // `taken` includes the two batches in use, which must not be overwritten.
    const int64_t ahead = std::ssize(slots) - 2;
    changed.wait(lock, [&] { return stop || claimed == num_batches || claimed - taken < ahead; });
    if (stop || claimed == num_batches) return -1;
    const int64_t index = claimed++;
    SlotOf(index).ready = false;
    if (prefetcher) {
      int64_t oldest = taken;  // not read yet
      while (SlotOf(oldest).ready) ++oldest;
      prefetcher->AtStep(first_step + oldest);
    }
    return index;
  }

  void Run() {
    NameTraceThread("batch reader");
    const RowsOfBatch rows_of = rows_of_batch;
    std::vector<int64_t> rows;
    for (int64_t index = Claim(); index >= 0; index = Claim()) {
      Slot& slot = SlotOf(index);
      try {
        const TraceSpan span("read batch");
        // A single reader is busy less than half of the time.
        std::optional<OtherThreads> busy;
        if (readers > 1) busy.emplace(1);
        rows_of(index, &rows);
        dataset.Read(rows, &slot.batch);
        if (change_batch) change_batch(index, &slot.batch);
      } catch (...) {
        slot.error = std::current_exception();
      }
      {
        std::lock_guard lock(mutex);
        slot.ready = true;
        if (slot.error) stop = true;  // nobody will ask for a later batch
      }
      changed.notify_all();
    }
  }

  void Stop() {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
};

int64_t StepsPerEpoch(int64_t rows, int64_t global_batch) {
  CHECK(global_batch > 0);
  if (rows < global_batch)
    Fail(ErrorCode::kConfig, "{} cannot fill one batch of {}: use a smaller batch or more data",
         Counted(rows, "row"), global_batch);
  return rows / global_batch;
}

BatchLoader::BatchLoader(const Dataset& dataset, const Options& options, ChangeBatch change)
    : impl_(std::make_unique<Impl>(dataset, options.num_steps, RowsOfSteps(options),
                                   ReadersOf(dataset, options), std::move(change))) {
  CHECK(options.row_end <= dataset.num_rows());
  impl_->first_step = options.first_step;
  if (dataset.cache() != nullptr)
    impl_->prefetcher = std::make_unique<Prefetcher>(*dataset.cache(), options);
  Start();
}

BatchLoader::BatchLoader(const Dataset& dataset, int64_t num_batches, RowsOfBatch rows, int readers,
                         ChangeBatch change)
    : impl_(std::make_unique<Impl>(dataset, num_batches, std::move(rows), readers,
                                   std::move(change))) {
  Start();
}

void BatchLoader::Start() {
  CHECK(impl_->readers >= 1 && impl_->num_batches >= 0);
  try {
    for (int i = 0; i < impl_->readers; ++i) impl_->threads.emplace_back([this] { impl_->Run(); });
  } catch (const std::system_error& error) {
    impl_->Stop();
    Fail(ErrorCode::kOsError, "cannot start a thread that reads batches: {}", error.what());
  }
}

BatchLoader::~BatchLoader() { impl_->Stop(); }

const Batch& BatchLoader::Next() {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  CHECK_MSG(impl.taken < impl.num_batches, "Next() was called more often than there are batches");
  Impl::Slot& slot = impl.SlotOf(impl.taken);
  impl.changed.wait(lock, [&] { return impl.claimed > impl.taken && slot.ready; });
  if (slot.error) std::rethrow_exception(slot.error);
  ++impl.taken;
  lock.unlock();
  impl.changed.notify_all();
  return slot.batch;
}

}  // namespace renzan
