#include "renzan/cli/machine/count_gpus.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace renzan {

int64_t CountGpus(const std::string& root) {
  int64_t gpus = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/dev", error)) {
    // /dev/nvidia0, /dev/nvidia1, ... and not /dev/nvidiactl.
    const std::string name = entry.path().filename();
    const std::string number = name.starts_with("nvidia") ? name.substr(6) : "";
    gpus += !number.empty() && std::all_of(number.begin(), number.end(),
                                           [](unsigned char c) { return std::isdigit(c) != 0; });
  }
  return gpus;
}

}  // namespace renzan
