#pragma once

// renzan train --rerun DIR: repeats a run from its manifest.

#include <span>
#include <string>

#include "renzan/base/config/config.h"
#include "renzan/config/train_config.h"
#include "renzan/run/run.h"

namespace renzan {

// Reads the configuration of a finished run from DIR/manifest.json. Throws kNoInput or kData.
void ReadRecordedConfig(const std::string& run_dir, std::span<const std::string> overrides,
                        const ConfigFields::Describer& describe);

// Throws kData if a dataset has changed since the recorded run.
void CheckSameData(const std::string& run_dir, const TrainConfig& config);

// Prints whether the model is identical. Returns 0 if so, else 1.
int CompareWithRecorded(const std::string& run_dir, const RunResult& result);

}  // namespace renzan
