#pragma once

// Group AUC of rows that several workers predict (model/grouped_metrics.h). The result does not
// depend on the number of workers.

#include <cstdint>
#include <optional>
#include <span>

#include "renzan/comm/communicator.h"
#include "renzan/infer/evaluate.h"
#include "renzan/infer/row_groups.h"
#include "renzan/model/grouped_metrics.h"

namespace renzan {

// Whether groups of rows are measured: labels of 0 and 1 are.
inline bool HasGroups(const EvaluatedOutput& output) {
  return output.kind() != OutputKind::kNumber;
}
// Throws request.code if no output has them.
void CheckGroupsHaveScores(std::span<const EvaluatedOutput> outputs, const GroupRequest& request);

// Of all workers' samples. Each worker gets the samples of its share of the groups, so that at most
// 32 bytes of memory per sample are needed, 16 if there is one worker. `unseen`:
// RowGroups::unseen(). Every rank calls it.
GroupAucs MergeGroups(Communicator& comm, GroupedMetrics mine, std::optional<int64_t> unseen);

}  // namespace renzan
