#pragma once

// Prefetches batches on background threads. The rows of a training step are a pure function of
// (seed, step): the step number is the position in the data, so checkpoints need no loader state.
// Only one thread may call Next().

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "renzan/data/batch.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/sample_order.h"

namespace renzan {

struct BatchLoaderOptions {
  uint64_t seed = 0;
  int64_t row_begin = 0;  // rows [row_begin, row_end) of the dataset are trained on
  int64_t row_end = 0;
  int64_t global_batch = 0;  // samples per step over all workers
  int64_t slice_begin = 0;   // this worker's samples of the global batch
  int64_t slice_end = 0;
  int64_t first_step = 0;
  int64_t num_steps = 0;
  ShuffleOptions shuffle;
  int readers = 1;  // at most so many threads, each reading one batch at a time
};

// Sets `rows` to the rows of batch `index`. Each reader has its own copy of the function, and calls
// it with ascending `index`.
using RowsOfBatch = std::function<void(int64_t index, std::vector<int64_t>* rows)>;
// Changes batch `index` after it has been read. Readers call it at the same time.
using ChangeBatch = std::function<void(int64_t index, Batch* batch)>;

// Steps in one epoch. Rows that do not fill a last global batch are dropped; with shuffling each
// epoch drops different ones. Throws kConfig if the rows do not fill one batch.
int64_t StepsPerEpoch(int64_t rows, int64_t global_batch);

class BatchLoader {
 public:
  using Options = BatchLoaderOptions;

  // `dataset` must outlive the loader. Step s is step s % StepsPerEpoch of epoch s / StepsPerEpoch,
  // and batch s - first_step.
  BatchLoader(const Dataset& dataset, const Options& options, ChangeBatch change = nullptr);
  BatchLoader(const Dataset& dataset, int64_t num_batches, RowsOfBatch rows, int readers = 1,
              ChangeBatch change = nullptr);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // The next batch, valid until the call after the next one: a step may look at its successor's
  // batch. If a reader failed, its Error is thrown here instead. May be called once per batch.
  const Batch& Next();

  // Batches in memory at once: one that each reader fills, one that waits, and two in use.
  static int SlotsFor(int readers) { return readers + 3; }

 private:
  void Start();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace renzan
