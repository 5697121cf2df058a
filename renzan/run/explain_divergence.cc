#include "renzan/run/explain_divergence.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "renzan/data/batch.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dense_spread.h"
#include "renzan/run/loop.h"

namespace renzan {

namespace {

// Of dense features whose values are too large, or "".
std::string TooLargeFeature(const Split& train) {
  constexpr int64_t kSample = 4096;
  const std::vector<std::string>& names = train.dataset->schema().dense;
  if (names.empty()) return "";
  std::vector<int64_t> rows(static_cast<size_t>(std::min(kSample, train.rows.size())));
  std::iota(rows.begin(), rows.end(), train.rows.begin);
  Batch batch;
  try {
    train.dataset->Read(rows, &batch);
  } catch (const Error&) {
    return "";  // the error of training says more
  }
  DenseSpread spread(names.size());
  for (size_t row = 0; row < rows.size(); ++row)
    spread.Add(std::span(batch.dense).subspan(row * names.size(), names.size()));
  return spread.TooLarge(names);
}

}  // namespace

Error ExplainDivergence(const DivergedError& error, const Split& train,
                        const OptimizerConfig& optimizer) {
  const std::string largest = TooLargeFeature(train);
  if (!largest.empty())
    return error.WithContext(
        fmt::format("the values of dense feature {} are too large to be trained on as they are: "
                    "import it with that transform",
                    largest));
  // The other optimizers divide a gradient by its usual size.
  const bool scales_with_gradients =
      optimizer.dense.type == "sgd" || optimizer.sparse.type == "sgd";
  constexpr double kLargeWeight = 10;
  const WeightSummary& weight = train.dataset->manifest().weight;
  if (scales_with_gradients && weight.mean > kLargeWeight)
    return error.WithContext(
        fmt::format("the mean of the weights '{}' is {:.4g}, by which SGD's learning rates are "
                    "multiplied: divide the weights by it and import the data again",
                    weight.name, weight.mean));
  return error;
}

}  // namespace renzan
