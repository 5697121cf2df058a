#pragma once

// Where two configurations differ, and whether that matters, which follows from what each key
// decides (decides.h).

#include <optional>
#include <string>

#include "renzan/config/decides.h"
#include "renzan/config/train_config.h"

namespace renzan {

// The first value that differs between two configurations.
struct ConfigDifference {
  std::string key, there, here;  // "model.embedding_dim", "16", "8"; "unset" if missing
};

// The first difference in a key for which `matters` returns true.
std::optional<ConfigDifference> FirstDifference(TrainConfig there, TrainConfig here,
                                                bool (*matters)(Decides));

// Whether all workers of a run must have the same value.
bool WorkersMustAgree(Decides decides);

// Whether a saved model may be evaluated with another value, which changes how it is computed.
bool MayChangeAfterTraining(Decides decides);

// Empty if a run with one configuration can continue with the other without changing a bit of the
// model; otherwise a sentence that names the first key that prevents it: "model.embedding_dim is 16
// there and 8 here". Evaluation (unless the learning rates follow it: watches_evaluations),
// reporting, paths and placement may differ, and so may the length of training unless the learning
// rates follow it (ScheduleConfig::ends_with_run).
std::string DifferenceThatChangesBits(TrainConfig there, TrainConfig here);

}  // namespace renzan
