#include "renzan/run/left_out_rows.h"

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr double kShareWorthAWarning = 0.01;

// The size from half of the batch on that leaves out fewest rows, and the largest of them. Larger
// batches would make few steps even fewer.
int64_t BestBatchSize(const TrainConfig& config, int64_t rows) {
  const int64_t unit = config.numerics.virtual_workers, now = config.training.batch_size;
  int64_t best = now;
  const int64_t first = std::max<int64_t>(1, now / unit / 2) * unit;
  for (int64_t size = first; size < now; size += unit)
    if (rows % size < rows % best || (best != now && rows % size == rows % best)) best = size;
  return best;
}

}  // namespace

int64_t LeftOutRows(const TrainConfig& config, int64_t rows, int64_t steps) {
  const int64_t batch = config.training.batch_size;
  return steps < rows / batch ? 0 : rows % batch;
}

std::string LeftOutAdvice(const TrainConfig& config, int64_t rows, int64_t steps) {
  const int64_t left = LeftOutRows(config, rows, steps), batch = config.training.batch_size;
  const double share = static_cast<double>(left) / static_cast<double>(rows);
  if (share < kShareWorthAWarning) return "";
  // With shuffling each epoch leaves out others.
  const bool never = !config.data.shuffle || steps <= rows / batch;
  const int64_t best = BestBatchSize(config, rows);
  return fmt::format("{} of {} ({:.1f} %) are {}, because they do not fill a batch of {}{}", left,
                     Counted(rows, "training row"), 100 * share,
                     never ? "never trained on" : "left out of each epoch, others each time", batch,
                     best == batch
                         ? ""
                         : fmt::format("; training.batch_size: {} leaves out {}", best,
                                       rows % best == 0 ? "none" : fmt::format("{}", rows % best)));
}

void CheckFillsBatch(const TrainConfig& config, int64_t rows) {
  const int64_t batch = config.training.batch_size, unit = config.numerics.virtual_workers;
  if (rows >= batch) return;
  if (rows < unit)
    Fail(ErrorCode::kConfig,
         "{} cannot fill one batch: a batch has at least one row for each of the virtual workers, "
         "{} in all; use more data, or set numerics.virtual_workers and training.batch_size "
         "to 1",
         Counted(rows, "training row"), unit);
  Fail(ErrorCode::kConfig,
       "{} cannot fill one batch of {}: set training.batch_size to {}, or less for "
       "more than one step in an epoch",
       Counted(rows, "training row"), batch, rows / unit * unit);
}

}  // namespace renzan
