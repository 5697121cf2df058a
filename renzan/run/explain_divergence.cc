#include "renzan/run/explain_divergence.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "renzan/data/batch.h"
#include "renzan/data/dense_spread.h"
#include "renzan/run/loop.h"

namespace renzan {

Error ExplainDivergence(const DivergedError& error, const Split& train) {
  constexpr int64_t kSample = 4096;
  const std::vector<std::string>& names = train.dataset->schema().dense;
  if (names.empty()) return error;
  std::vector<int64_t> rows(static_cast<size_t>(std::min(kSample, train.rows.size())));
  std::iota(rows.begin(), rows.end(), train.rows.begin);
  Batch batch;
  try {
    train.dataset->Read(rows, &batch);
  } catch (const Error&) {
    return error;  // that of training says more
  }
  DenseSpread spread(names.size());
  for (size_t row = 0; row < rows.size(); ++row)
    spread.Add(std::span(batch.dense).subspan(row * names.size(), names.size()));
  const std::string largest = spread.TooLarge(names);
  if (largest.empty()) return error;
  return error.WithContext(
      fmt::format("the values of dense feature {} are too large to be trained on as they are: "
                  "import it with that transform",
                  largest));
}

}  // namespace renzan
