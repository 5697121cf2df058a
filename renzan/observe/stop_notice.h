#pragma once

// stop.json in RENZAN_RUN_DIR (the launch contract): when a run that was asked to stop is killed.

#include <optional>
#include <string>

namespace renzan {

// The deadline in that file, in Unix time. Nothing if there is no file and, after a warning, if it
// cannot be read.
std::optional<double> ReadStopDeadline(const std::string& path);

}  // namespace renzan
