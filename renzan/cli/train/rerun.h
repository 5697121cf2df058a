#pragma once

// renzan train --rerun DIR: the same run again, from what its manifest recorded.

#include <span>
#include <string>

#include "renzan/base/config.h"
#include "renzan/train/config.h"
#include "renzan/train/run.h"

namespace renzan {

// Reads the configuration that DIR/manifest.json recorded, of a finished run. Throws kNoInput or
// kData.
void ReadRecordedConfig(const std::string& run_dir, std::span<const std::string> overrides,
                        const ConfigFields::Describer& describe);

// Throws kData when a dataset no longer holds what the recorded run read.
void CheckSameData(const std::string& run_dir, const TrainConfig& config);

// Prints whether the model came out identical; 0 if so, else 1.
int CompareWithRecorded(const std::string& run_dir, const RunResult& result);

}  // namespace renzan
