#pragma once

// Where a run is, and what its past attempts left: all workers agree on this before a run starts or
// resumes. Every rank makes the same calls.

#include <cstdint>
#include <map>
#include <string>

#include "renzan/base/clock.h"
#include "renzan/comm/communicator.h"
#include "renzan/config/train_config.h"
#include "renzan/saving/past_run.h"

namespace renzan {

inline constexpr const char* kModelName = "model";

// Rank 0 chooses and broadcasts. `name`: part of the run directory's name when the configuration
// has none. A run that was begun with another checkpoint directory than the default keeps it.
// Throws kConfig if the run has checkpoints, but not in the directory that the configuration names;
// kCantCreate if it would write its files into a dataset, a model or a checkpoint.
RunDirectories ChooseDirectories(const TrainConfig& config, const std::string& name,
                                 const Clock& clock, Communicator& comm);

// Whether a run has saved anything there, valid or not.
bool HoldsState(const RunDirectories& directories);

// Whether all workers see the run directory, which worker 0 has created and locked.
bool SharesRunDirectory(const std::string& run_dir, Communicator& comm);

// Throws kNoInput: there is nothing to resume from.
[[noreturn]] void FailNothingToResume(const RunDirectories& directories);

// Rank 0 looks (FindPastRun) and broadcasts. Throws kNoInput if there is nothing to resume from and
// `must_resume`, unless the run was stopped before its first checkpoint: it begins at step 0.
PastRun AgreeOnPastRun(const RunDirectories& directories, const TrainConfig& config,
                       const std::map<std::string, std::string>& run, int64_t steps,
                       bool must_resume, Communicator& comm);

// On rank 0, for a run that was killed after saving its model but before recording that.
void RecordFinished(const std::string& run_dir, int64_t steps, const std::string& model_sha256,
                    const Clock& clock);

}  // namespace renzan
