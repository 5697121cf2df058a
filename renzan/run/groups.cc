#include "renzan/run/groups.h"

#include <algorithm>
#include <string>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/infer/group_auc.h"
#include "renzan/run/agreement.h"

namespace renzan {

std::optional<RowGroups> GroupsOf(const TrainConfig& config, const OpenedSplits& splits,
                                  std::span<const EvaluatedOutput> outputs, Communicator& comm) {
  const std::string& name = config.training.group_by;
  if (name.empty() || !splits.eval) return std::nullopt;
  const Dataset& dataset = *splits.eval->dataset;
  const GroupRequest request{"training.group_by:", ErrorCode::kConfig, splits.train.dataset};
  // Keys are no part of the fingerprint, which workers have compared.
  const std::vector<std::string>& keys = dataset.manifest().keys;
  const bool by_key = std::find(keys.begin(), keys.end(), name) != keys.end();
  CheckWorkersAgree(comm, fmt::format("key '{}' in {}", Escape(name), dataset.directory()),
                    by_key ? KeyFingerprint(dataset, name).substr(0, 12) : "none",
                    "give every worker the same dataset");
  CheckCanGroup(name, dataset, request);
  CheckGroupsHaveScores(outputs, request);
  std::optional<RowGroups> groups;
  RunWithHeartbeats(comm, [&] { groups.emplace(name, dataset, splits.eval->rows, request); });
  if (by_key && comm.rank() == 0)
    LogInfo("training.group_by: {} of data.eval in {} by the texts of '{}'",
            Counted(splits.eval->rows.size(), "row"), Counted(groups->key()->size(), "group"),
            Escape(name));
  return groups;
}

}  // namespace renzan
