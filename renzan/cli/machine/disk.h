#pragma once

// Measures the speed of the disk under a directory, as checkpoints and datasets will use it.

#include <string>

#include "renzan/base/clock.h"
#include "renzan/cli/machine/finding.h"

namespace renzan {

// Writes and syncs an unnamed file in `directory` and reads it back bypassing the page cache. Never
// throws: a failure becomes the finding.
Finding FindDisk(const std::string& directory, const Clock& clock);

}  // namespace renzan
