#pragma once

// Predictions over a range of rows of a dataset, on all workers. Every rank makes the same calls
// and gets the same result, which does not depend on the number of workers.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "renzan/comm/communicator.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/infer/predictor.h"
#include "renzan/model/metrics.h"

namespace renzan {

struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// Metrics of `rows`, merged over the workers; nothing if `should_stop` returned true. It is called
// after every batch and must return the same on every rank.
std::optional<BinaryMetrics> Evaluate(Predictor& model, Communicator& comm, const Dataset& dataset,
                                      RowRange rows, int64_t batch_size,
                                      const std::function<bool()>& should_stop);

// Calls sink(logits) after every batch: on rank 0 with the logits of the next rows, on the other
// ranks with none.
void PredictRows(Predictor& model, Communicator& comm, const Dataset& dataset, RowRange rows,
                 int64_t batch_size, const std::function<void(std::span<const float>)>& sink);

// Sums the workers' metrics.
BinaryMetrics MergeMetrics(Communicator& comm, const BinaryMetrics& mine);

}  // namespace renzan
