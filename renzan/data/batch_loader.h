#pragma once

// Reads the batches of a run ahead of their use, on one background thread. What a step reads is a
// pure function of (seed, step): the position in the data is the step number, and nothing here has
// state that a checkpoint would have to keep. Next() belongs to one thread.

#include <cstdint>
#include <memory>

#include "renzan/data/batch.h"
#include "renzan/data/dataset.h"
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
  int prefetch = 2;  // batches read ahead
};

// Steps in one epoch. The rows that do not fill a last global batch are left out of the epoch; with
// shuffling every epoch leaves out others. Throws kConfig if there is not one whole batch.
int64_t StepsPerEpoch(int64_t rows, int64_t global_batch);

class BatchLoader {
 public:
  using Options = BatchLoaderOptions;

  // `dataset` must outlive the loader. Step s is step s % StepsPerEpoch of epoch s / StepsPerEpoch.
  BatchLoader(const Dataset& dataset, const Options& options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // The slice of the next step, valid until the next call. An Error of the reading thread is thrown
  // here when its batch's turn comes. May be called num_steps times.
  const Batch& Next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace renzan
