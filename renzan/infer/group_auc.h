#pragma once

// Group AUC of rows that several workers predict (model/grouped_metrics.h). The result does not
// depend on the number of workers.

#include <cstddef>
#include <span>
#include <string>

#include "renzan/base/error.h"
#include "renzan/comm/communicator.h"
#include "renzan/data/dataset/dataset.h"
#include "renzan/infer/evaluate.h"
#include "renzan/model/grouped_metrics.h"

namespace renzan {

// How groups were asked for, for errors.
struct GroupRequest {
  std::string key;  // "--group-by"
  ErrorCode code;   // if rows cannot be grouped so
};

// The index of the categorical feature with this name. Throws request.code unless it has one id a
// row.
size_t FindGroupFeature(const std::string& name, const Dataset& dataset,
                        const GroupRequest& request);

// Whether groups of rows are measured: labels of 0 and 1 are.
inline bool HasGroups(const EvaluatedOutput& output) {
  return output.kind() != OutputKind::kNumber;
}
// Throws request.code if no output has them.
void CheckGroupsHaveScores(std::span<const EvaluatedOutput> outputs, const GroupRequest& request);

// Of all workers' samples. Each worker gets the samples of its share of the groups, so that at most
// 32 bytes of memory per sample are needed, 16 if there is one worker. Every rank calls it.
GroupAucs MergeGroups(Communicator& comm, GroupedMetrics mine);

}  // namespace renzan
