#pragma once

// How fast the disk below a directory is: what a checkpoint and a data set see of it.

#include <string>

#include "renzan/base/clock.h"
#include "renzan/cli/machine/finding.h"

namespace renzan {

// Writes a file of a few megabytes without a name into `directory`, has it put on the disk, and
// reads it back past the page cache. Never throws: what fails is the finding.
Finding FindDisk(const std::string& directory, const Clock& clock);

}  // namespace renzan
