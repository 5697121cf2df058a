#pragma once

#include <cstdint>
#include <string>

namespace renzan {

// How much is on a disk or sent, in decimal units as disks have them: "512 B", "1.5 kB", "9.1 MB",
// "1.2 GB".
std::string BytesText(int64_t bytes);

}  // namespace renzan
