#pragma once

// A worker's samples of rows of a dataset, batch by batch, in the order of the rows.

#include <cstdint>
#include <functional>

#include "renzan/base/function_ref.h"
#include "renzan/comm/communicator.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/data/known_ids.h"
#include "renzan/infer/predictor.h"

namespace renzan {

struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Rows of a dataset as a model reads them.
struct ModelRows {
  const Dataset* dataset = nullptr;
  RowRange rows;
  KnownIds* known_ids = nullptr;  // Predictor::known_ids(), of this dataset
};

struct SliceOptions {
  int64_t count = 0;                      // of the rows
  std::function<int64_t(int64_t i)> row;  // in the dataset, of the i-th of them; thread-safe
  bool counts_ids = false;                // whether their lookups count in KnownIds
  int64_t batch_size = 1;
};

// Processes the rows in global batches. Where shapes are fixed, the last batch is padded with
// copies of its last row, which are not counted. Calls visit(index of the batch, number of real
// samples in this worker's slice, the slice, the next one or null) until it returns false. The next
// slice is read while one is computed. Every rank makes the same calls.
void ForEachSlice(
    const Predictor& model, const Communicator& comm, const Dataset& dataset, KnownIds* known_ids,
    const SliceOptions& options,
    FunctionRef<bool(int64_t index, int64_t real, const Batch& slice, const Batch* next)> visit);

}  // namespace renzan
