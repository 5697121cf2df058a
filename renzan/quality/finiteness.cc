#include "renzan/quality/finiteness.h"

#include <algorithm>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/gather.h"

namespace renzan {

Finiteness Merge(std::span<const Finiteness> workers) {
  Finiteness all;
  for (const Finiteness& worker : workers) all.bad_step = std::min(all.bad_step, worker.bad_step);
  for (const Finiteness& worker : workers) {
    if (worker.ok() || worker.bad_step != all.bad_step) continue;
    all.predictions |= worker.predictions;
    all.dense |= worker.dense;
    all.tables |= worker.tables;
  }
  return all;
}

void FailUnlessFinite(const Finiteness& all) {
  if (all.ok()) return;
  std::vector<std::string> parts;
  if (all.predictions) parts.push_back("predictions");
  if (all.dense) parts.push_back("dense parameters");
  if (all.tables) parts.push_back("rows of embedding tables");
  throw DivergedError(
      ErrorCode::kSoftware,
      fmt::format(
          "training diverged at step {}: NaN or infinite {}; this state was not saved. Lower "
          "optimizer.dense.learning_rate and optimizer.sparse.learning_rate (try a tenth), or add "
          "optimizer.schedule.warmup_steps",
          all.bad_step, fmt::join(parts, ", ")));
}

void CheckFinite(Communicator& comm, const Finiteness& mine) {
  FailUnlessFinite(Merge(AllGatherValues(comm, mine)));
}

}  // namespace renzan
