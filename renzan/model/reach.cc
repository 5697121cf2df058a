#include "renzan/model/reach.h"

#include "renzan/base/counted.h"
#include "renzan/base/error.h"

namespace renzan {
namespace {

// The dot interaction passes on the bottom MLP's output as it is, and everything else only as
// products of pairs. Without dense features, the bottom MLP's output is zero.
bool SeesOnlyPairs(const ModelOptions& options) {
  return FindModelType(options.type).interaction == Interaction::kDot && options.num_dense == 0;
}

}  // namespace

void CheckInputsReachLogit(const ModelOptions& options) {
  if (SeesOnlyPairs(options) && options.tables.size() == 1)
    Fail(ErrorCode::kConfig,
         "model.type: {} compares features in pairs, but the dataset has no dense features and one "
         "categorical feature ({}): every prediction would be the same; use model.type: "
         "dlrm_dcnv2, or data with more features",
         options.type, options.tables[0].name);
}

std::string LostEffects(const ModelOptions& options) {
  if (!SeesOnlyPairs(options)) return "";
  return fmt::format(
      "model.type: {} without dense features sees its {} only as products of "
      "pairs, not what each says by itself: it learns slowly and is less accurate; model.type: "
      "dlrm_dcnv2 sees both",
      options.type, Counted(options.tables.size(), "categorical feature"));
}

}  // namespace renzan
