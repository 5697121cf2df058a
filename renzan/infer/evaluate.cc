#include "renzan/infer/evaluate.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/comm/gather.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/infer/group_auc.h"

namespace renzan {
namespace {

// Calls visit(the first row of this worker's slice, the number of its real samples, its logits
// [outputs, slice size], the slice) until it returns false. `shifts` are added to the logits of
// each output.
void ForEachSliceOfLogits(
    Predictor& model, const Communicator& comm, const Dataset& dataset, RowRange rows,
    int64_t batch_size, std::span<const float> shifts,
    const std::function<bool(int64_t first, int64_t real, std::span<const float> logits,
                             const Batch& slice)>& visit) {
  std::vector<float> logits;
  const int64_t begin = rows.begin + model.slice_begin(batch_size);
  ForEachSlice(model, comm, dataset, model.known_ids(),
               {.count = rows.size(),
                .row = [first = rows.begin](int64_t i) { return first + i; },
                .counts_ids = true,
                .batch_size = batch_size},
               [&](int64_t index, int64_t real, const Batch& slice, const Batch* next) {
                 const size_t size = static_cast<size_t>(slice.size);
                 logits.resize(size * model.num_outputs());
                 model.Predict(slice, next, logits);
                 for (size_t output = 0; output < shifts.size(); ++output)
                   if (shifts[output] != 0)
                     for (float& logit : std::span(logits).subspan(output * size, size))
                       logit += shifts[output];
                 return visit(begin + index * batch_size, real, logits, slice);
               });
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

// Every rank's, which are as many on each.
std::vector<std::vector<int64_t>> GatherIntegers(Communicator& comm,
                                                 std::span<const int64_t> integers) {
  std::vector<std::vector<int64_t>> all(static_cast<size_t>(comm.world_size()),
                                        std::vector<int64_t>(integers.size()));
  std::vector<std::span<std::byte>> parts;
  for (std::vector<int64_t>& part : all) parts.push_back(std::as_writable_bytes(std::span(part)));
  comm.AllGatherV(std::as_bytes(integers), parts);
  return all;
}

}  // namespace

float LogitShift(double of_model, double of_data) {
  return of_model == of_data ? 0 : static_cast<float>(std::log(of_model / of_data));
}

std::string NegativesText(double kept) {
  return kept == 1 ? "all negatives" : fmt::format("{:.4g} of the negatives", kept);
}

std::optional<WeightedMetrics> MakeWeightedMetrics(const Dataset& dataset) {
  if (dataset.schema().weight.empty()) return std::nullopt;
  return WeightedMetrics(dataset.manifest().weight.max);
}

GroupedMetrics MakeGroupedMetrics(const Dataset& dataset) {
  if (dataset.schema().weight.empty()) return GroupedMetrics();
  return GroupedMetrics(WeightUnits(dataset.manifest().weight.max));
}

OutputMetrics MergeMetrics(Communicator& comm, const OutputMetrics& mine) {
  if (comm.world_size() == 1) return mine;
  // Of the same length on all workers: some may have no numbers.
  std::vector<int64_t> integers = mine.ToIntegers();
  integers.resize(OutputMetrics::kMaxIntegers);
  OutputMetrics sum;
  for (const std::vector<int64_t>& part : GatherIntegers(comm, integers))
    sum.Merge(OutputMetrics::FromIntegers(part));
  return sum;
}

RankingMetrics MergeMetrics(Communicator& comm, const RankingMetrics& mine) {
  if (comm.world_size() == 1) return mine;
  RankingMetrics sum(mine.candidates());
  for (const std::vector<int64_t>& part : GatherIntegers(comm, mine.rows_of_rank()))
    sum.Merge(part);
  return sum;
}

std::vector<float> ShiftsOf(const std::vector<ModelOutput>& outputs, float logit_shift) {
  std::vector<float> shifts;
  for (const ModelOutput& output : outputs)
    shifts.push_back(output.loss == Loss::kBinaryCrossEntropy ? logit_shift : 0);
  return shifts;
}

std::vector<EvaluatedOutput> EvaluatedOutputs(const std::vector<ModelOutput>& outputs,
                                              const std::string& first_label) {
  if (outputs.size() == 1) {
    const bool is_default = outputs[0].label.empty();
    return {{.label = is_default ? first_label : outputs[0].label,
             .any_name = is_default,
             .loss = outputs[0].loss}};
  }
  std::vector<EvaluatedOutput> evaluated;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].label.empty())
      evaluated.push_back({.name = outputs[i].name,
                           .output = i,
                           .label = outputs[i].label,
                           .loss = outputs[i].loss});
  return evaluated;
}

std::vector<EvaluatedOutput> EvaluatedOutputs(const Model& model, const std::string& first_label) {
  std::vector<EvaluatedOutput> evaluated = EvaluatedOutputs(model.options().outputs, first_label);
  for (EvaluatedOutput& output : evaluated)
    output.compares_items = model.ComparesItems(output.output);
  return evaluated;
}

std::vector<size_t> LabelColumns(std::span<const EvaluatedOutput> outputs, const Dataset& dataset) {
  std::vector<size_t> columns;
  const std::vector<std::string> names = dataset.schema().label_names();
  for (const EvaluatedOutput& output : outputs) {
    const auto found = std::find(names.begin(), names.end(), output.label);
    const bool is_first = output.label.empty() || (output.any_name && names.size() == 1);
    if (found == names.end() && !is_first)
      Fail(ErrorCode::kConfig,
           "{} has no label '{}', which the model learns from; it has {}: import it with the "
           "training data's schema",
           dataset.directory(), Escape(output.label),
           Escape(fmt::format("{}", fmt::join(names, ", "))));
    columns.push_back(is_first ? 0 : static_cast<size_t>(found - names.begin()));
  }
  return columns;
}

std::optional<std::vector<Evaluation>> Evaluate(Predictor& model, Communicator& comm,
                                                const Dataset& dataset, RowRange rows,
                                                std::span<const EvaluatedOutput> outputs,
                                                int64_t batch_size, float logit_shift,
                                                const RowGroups* groups,
                                                const std::function<bool()>& should_stop) {
  const std::vector<size_t> columns = LabelColumns(outputs, dataset);
  std::vector<Evaluation> all(outputs.size());
  std::vector<GroupedMetrics> grouped(outputs.size(), MakeGroupedMetrics(dataset));
  // No more memory than the estimate says.
  const int64_t slice = model.slice_end(batch_size) - model.slice_begin(batch_size);
  for (size_t i = 0; groups != nullptr && i < outputs.size(); ++i)
    if (HasGroups(outputs[i]))
      grouped[i].samples().reserve(static_cast<size_t>(
          std::min(rows.size(), (rows.size() + batch_size - 1) / batch_size * slice)));
  for (Evaluation& mine : all) mine.weighted = MakeWeightedMetrics(dataset);
  std::vector<float> shifts(model.num_outputs());
  for (const EvaluatedOutput& output : outputs)
    if (output.loss == Loss::kBinaryCrossEntropy) shifts[output.output] = logit_shift;
  bool stopped = false;
  ForEachSliceOfLogits(
      model, comm, dataset, rows, batch_size, shifts,
      [&](int64_t first, int64_t real, std::span<const float> logits, const Batch& slice) {
        const size_t n = static_cast<size_t>(real), size = static_cast<size_t>(slice.size);
        for (size_t i = 0; i < all.size(); ++i) {
          const auto of_output = logits.subspan(outputs[i].output * size, n);
          const auto labels = slice.labels(columns[i]).first(n);
          all[i].metrics.AddBy(outputs[i].loss, of_output, labels);
          if (all[i].weighted)
            all[i].weighted->AddBy(outputs[i].loss, of_output, labels,
                                   std::span(slice.weight).first(n));
          if (groups == nullptr || !HasGroups(outputs[i])) continue;
          grouped[i].Add(groups->Of(first, real, slice), of_output, labels,
                         std::span(slice.weight).first(all[i].weighted ? n : 0));
        }
        stopped = should_stop();
        return !stopped;
      });
  if (stopped) return std::nullopt;
  for (Evaluation& mine : all) {
    mine.metrics = MergeMetrics(comm, mine.metrics);
    if (mine.weighted) Merge(comm, &*mine.weighted);
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (groups != nullptr && HasGroups(outputs[i]))
      all[i].groups = MergeGroups(comm, std::move(grouped[i]), groups->unseen());
  return all;
}

void PredictRows(Predictor& model, Communicator& comm, const Dataset& dataset, RowRange rows,
                 int64_t batch_size, std::span<const float> shifts,
                 const std::function<void(const LogitsByOutput&)>& sink) {
  const size_t size = static_cast<size_t>(batch_size);
  std::vector<float> batch(size * model.num_outputs());
  std::vector<std::vector<std::span<std::byte>>> parts(model.num_outputs());  // by output and rank
  const RowRange mine = {model.slice_begin(batch_size), model.slice_end(batch_size)};
  for (const RowRange& slice : AllGatherValues(comm, mine))
    for (size_t output = 0; output < parts.size(); ++output)
      parts[output].push_back(std::as_writable_bytes(std::span(batch).subspan(
          output * size + static_cast<size_t>(slice.begin), static_cast<size_t>(slice.size()))));
  int64_t left = rows.size();
  // A single worker's last slice may be shorter than its part.
  std::vector<float> whole;
  ForEachSliceOfLogits(
      model, comm, dataset, rows, batch_size, shifts,
      [&](int64_t, int64_t, std::span<const float> logits, const Batch& slice) {
        const size_t n = static_cast<size_t>(slice.size);
        const size_t real = comm.rank() == 0 ? static_cast<size_t>(std::min(left, batch_size)) : 0;
        LogitsByOutput by_output;
        for (size_t output = 0; output < parts.size(); ++output) {
          whole.assign(parts[output][static_cast<size_t>(comm.rank())].size() / sizeof(float),
                       0.0f);
          std::copy_n(logits.data() + output * n, n, whole.data());
          comm.AllGatherV(std::as_bytes(std::span(whole)), parts[output]);
          by_output.push_back(std::span(batch).subspan(output * size, real));
        }
        sink(by_output);
        left -= batch_size;
        return true;
      });
}

}  // namespace renzan
