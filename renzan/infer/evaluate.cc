#include "renzan/infer/evaluate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/virtual_workers.h"
#include "renzan/data/batch_loader.h"
#include "renzan/data/dataset/manifest.h"

namespace renzan {
namespace {

// Processes the range in global batches. Shapes are fixed, because a virtual worker is the unit of
// arithmetic, so the last batch is padded with copies of its last row, which are not counted. Calls
// visit(number of real samples in this worker's slice, its logits, the slice) until it returns
// false. The next slice is read, and its ids are exchanged, while one is computed.
void ForEachSlice(Step& model, const Dataset& dataset, RowRange rows, int64_t batch_size,
                  float logit_shift,
                  const std::function<bool(int64_t real, std::span<const float> logits,
                                           const Batch& slice)>& visit) {
  const int64_t size = model.slice_end() - model.slice_begin();
  const int64_t num_batches = (rows.size() + batch_size - 1) / batch_size;
  if (num_batches == 0) return;
  const auto begin_of = [first = rows.begin + model.slice_begin(), batch_size](int64_t index) {
    return first + index * batch_size;
  };
  const auto rows_of = [&](int64_t index, std::vector<int64_t>* wanted) {
    wanted->resize(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i)
      (*wanted)[static_cast<size_t>(i)] = std::min(begin_of(index) + i, rows.end - 1);
  };
  BatchLoader loader(dataset, num_batches, rows_of, model.batch_readers());
  PreparedBatches batches = model.MakeBatches();
  std::vector<float> logits(static_cast<size_t>(size));
  const Batch* slice = &loader.Next();
  for (int64_t index = 0; index < num_batches; ++index) {
    const Batch* const next = index + 1 < num_batches ? &loader.Next() : nullptr;
    model.Predict(*slice, next, &batches, logits);
    if (logit_shift != 0)
      for (float& logit : logits) logit += logit_shift;
    const int64_t real = std::clamp<int64_t>(rows.end - begin_of(index), 0, size);
    if (!visit(real, logits, *slice)) return;
    slice = next;
  }
}

// Sums the workers' metrics.
void Merge(Communicator& comm, WeightedMetrics* mine) {
  if (comm.world_size() == 1) return;
  std::vector<std::vector<FixedSum>> all(static_cast<size_t>(comm.world_size()),
                                         std::vector<FixedSum>(mine->sums().size()));
  std::vector<std::span<std::byte>> parts;
  for (std::vector<FixedSum>& part : all) parts.push_back(std::as_writable_bytes(std::span(part)));
  comm.AllGatherV(std::as_bytes(mine->sums()), parts);
  for (int rank = 0; rank < comm.world_size(); ++rank)
    if (rank != comm.rank()) mine->Merge(all[static_cast<size_t>(rank)]);
}

}  // namespace

float LogitShift(double of_model, double of_data) {
  return of_model == of_data ? 0 : static_cast<float>(std::log(of_model / of_data));
}

std::string NegativesText(double kept) {
  return kept == 1 ? "all negatives" : fmt::format("{} of the negatives", kept);
}

std::optional<WeightedMetrics> MakeWeightedMetrics(const Dataset& dataset) {
  if (dataset.schema().weight.empty()) return std::nullopt;
  return WeightedMetrics(dataset.manifest().weight.max);
}

BinaryMetrics MergeMetrics(Communicator& comm, const BinaryMetrics& mine) {
  if (comm.world_size() == 1) return mine;
  const std::vector<int64_t> integers = mine.ToIntegers();
  std::vector<std::vector<int64_t>> all(static_cast<size_t>(comm.world_size()),
                                        std::vector<int64_t>(integers.size()));
  std::vector<std::span<std::byte>> parts;
  for (std::vector<int64_t>& part : all) parts.push_back(std::as_writable_bytes(std::span(part)));
  comm.AllGatherV(std::as_bytes(std::span(integers)), parts);
  BinaryMetrics sum;
  for (const std::vector<int64_t>& part : all) sum.Merge(BinaryMetrics::FromIntegers(part));
  return sum;
}

std::optional<Evaluation> Evaluate(Step& model, Communicator& comm, const Dataset& dataset,
                                   RowRange rows, int64_t batch_size, float logit_shift,
                                   const std::function<bool()>& should_stop) {
  Evaluation mine{.metrics = {}, .weighted = MakeWeightedMetrics(dataset)};
  bool stopped = false;
  ForEachSlice(model, dataset, rows, batch_size, logit_shift,
               [&](int64_t real, std::span<const float> logits, const Batch& slice) {
                 const size_t n = static_cast<size_t>(real);
                 const std::span<const float> labels = std::span(slice.label).first(n);
                 mine.metrics.Add(logits.first(n), labels);
                 if (mine.weighted)
                   mine.weighted->Add(logits.first(n), labels, std::span(slice.weight).first(n));
                 stopped = should_stop();
                 return !stopped;
               });
  if (stopped) return std::nullopt;
  mine.metrics = MergeMetrics(comm, mine.metrics);
  if (mine.weighted) Merge(comm, &*mine.weighted);
  return mine;
}

void PredictRows(Step& model, Communicator& comm, const Dataset& dataset, RowRange rows,
                 int64_t batch_size, float logit_shift,
                 const std::function<void(std::span<const float>)>& sink) {
  std::vector<float> batch(static_cast<size_t>(batch_size));
  std::vector<std::span<std::byte>> parts;
  const int64_t n = batch_size / model.spec().numerics.virtual_workers;
  for (int rank = 0; rank < comm.world_size(); ++rank) {
    const IndexRange range =
        VirtualWorkerRange(model.spec().numerics.virtual_workers, comm.world_size(), rank);
    parts.push_back(std::as_writable_bytes(std::span(batch).subspan(
        static_cast<size_t>(range.begin * n), static_cast<size_t>(range.size() * n))));
  }
  int64_t left = rows.size();
  ForEachSlice(model, dataset, rows, batch_size, logit_shift,
               [&](int64_t, std::span<const float> logits, const Batch&) {
                 comm.AllGatherV(std::as_bytes(logits), parts);
                 const size_t real = static_cast<size_t>(std::min(left, batch_size));
                 if (comm.rank() == 0) sink(std::span(batch).first(real));
                 left -= batch_size;
                 return true;
               });
}

}  // namespace renzan
