#include "renzan/run/best_model.h"

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/checkpoint/directory.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/saving/resume.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

std::string BestCheckpoint(const RunDirectories& directories, int64_t step) {
  return directories.checkpoints + "/" + CheckpointName(step);
}

}  // namespace

void ResetEvaluationsIfBestIsMissing(const RunDirectories& directories, Communicator& comm,
                                     LoopState* state) {
  const int64_t best = state->evaluations.best_step();
  if (best < 0 || best == state->step) return;
  const std::string path = BestCheckpoint(directories, best);
  char missing = 0;
  RunWithHeartbeats(comm, [&] {
    if (comm.rank() == 0)
      missing = Storage::Of(path).HasTree(path, kCheckpointManifestName) ? 0 : 1;
  });
  if (AllGatherValues(comm, missing)[0] == 0) return;
  if (comm.rank() == 0)
    LogWarning("{}, the best model so far, is missing: keeping the best model from here on", path);
  state->evaluations = state->evaluations.Emptied();
}

int64_t LoadBest(const RunDirectories& directories, const EvaluationRecord& evaluations,
                 int64_t step, ModelState& model, Communicator& comm) {
  const int64_t best = evaluations.best_step();
  if (best < 0 || best == step) return step;
  try {
    return LoadNewest({BestCheckpoint(directories, best)}, model, comm).step;
  } catch (const Error& error) {
    throw error.WithContext(
        fmt::format("cannot read the best model, of step {} (to continue without it, remove its "
                    "checkpoint and run the same command again)",
                    best));
  }
}

}  // namespace renzan
