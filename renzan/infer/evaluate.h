#pragma once

// Predictions over a range of rows of a dataset, on all workers. Every rank makes the same calls
// and gets the same result, which does not depend on the number of workers.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/comm/communicator.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/infer/for_each_slice.h"
#include "renzan/infer/predictor.h"
#include "renzan/infer/row_groups.h"
#include "renzan/model/evaluation.h"
#include "renzan/model/model.h"
#include "renzan/model/output_metric.h"

namespace renzan {

// What a model has learned from the share `of_model` of the negatives is calibrated for data with
// the share `of_data` of them, such as 1 for all, once this is added to its logits:
// ln(of_model / of_data) (He et al., "Practical lessons from predicting clicks on ads at Facebook",
// 2014). See DatasetSchema::negatives_kept.
float LogitShift(double of_model, double of_data);

// "0.1 of the negatives", or "all negatives".
std::string NegativesText(double kept);

// What evaluations measure: an output against a label.
struct EvaluatedOutput {
  std::string name;   // "": of the only one
  size_t output = 0;  // of ModelOptions::outputs
  std::string label;  // its column in the data; "": the first label
  // Of a model that names no outputs: in data with one label, it may have another name.
  bool any_name = false;
  Loss loss = Loss::kBinaryCrossEntropy;
  bool compares_items = false;

  OutputKind kind() const { return KindOf(loss, compares_items); }  // which metrics are measured
};
// Those that have a label. `first_label`: of the training data, if it is known.
std::vector<EvaluatedOutput> EvaluatedOutputs(const Model& model,
                                              const std::string& first_label = "");
// Without `compares_items`, before there is a model.
std::vector<EvaluatedOutput> EvaluatedOutputs(const std::vector<ModelOutput>& outputs,
                                              const std::string& first_label = "");

// Where the labels are in Batch::label. Throws kConfig if the dataset lacks one.
std::vector<size_t> LabelColumns(std::span<const EvaluatedOutput> outputs, const Dataset& dataset);

// Metrics of `rows` for each of `outputs`, merged over the workers; nothing if `should_stop`
// returned true. It is called after every batch and must return the same on every rank.
// `logit_shift` is added to all outputs that are logits. `groups`: by which the rows of all
// outputs that are no numbers are grouped, unless it is null.
std::optional<std::vector<Evaluation>> Evaluate(Predictor& model, Communicator& comm,
                                                const Dataset& dataset, RowRange rows,
                                                std::span<const EvaluatedOutput> outputs,
                                                int64_t batch_size, float logit_shift,
                                                const RowGroups* groups,
                                                const std::function<bool()>& should_stop);

// By output, of as many rows each.
using LogitsByOutput = std::vector<std::span<const float>>;

// `logit_shift` for each output that is a logit, and 0 for others.
std::vector<float> ShiftsOf(const std::vector<ModelOutput>& outputs, float logit_shift);

// Calls sink(logits) after every batch: on rank 0 with the logits of the next rows, on the other
// ranks with none. `shifts` are added to the outputs.
void PredictRows(Predictor& model, Communicator& comm, const Dataset& dataset, RowRange rows,
                 int64_t batch_size, std::span<const float> shifts,
                 const std::function<void(const LogitsByOutput&)>& sink);

// For Evaluation::weighted and ::groups.
std::optional<WeightedMetrics> MakeWeightedMetrics(const Dataset& dataset);
GroupedMetrics MakeGroupedMetrics(const Dataset& dataset);

// Sums the workers' metrics.
OutputMetrics MergeMetrics(Communicator& comm, const OutputMetrics& mine);
RankingMetrics MergeMetrics(Communicator& comm, const RankingMetrics& mine);

}  // namespace renzan
