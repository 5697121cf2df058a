#include "renzan/base/host.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

namespace renzan {
namespace {

constexpr std::string_view kGpuPrefix = "nvidia";

}  // namespace

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string MachineId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id.empty() ? HostName() : id;
}

std::vector<std::string> GpuDevices(const std::string& root) {
  std::vector<std::string> devices;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/dev", error)) {
    const std::string name = entry.path().filename();
    const std::string number = name.starts_with(kGpuPrefix) ? name.substr(kGpuPrefix.size()) : "";
    if (!number.empty() && std::all_of(number.begin(), number.end(),
                                       [](unsigned char c) { return std::isdigit(c) != 0; }))
      devices.push_back(name);
  }
  return devices;
}

std::vector<dev_t> GpuNumbers(const std::string& root) {
  std::map<unsigned long, dev_t> numbers;
  for (const std::string& device : GpuDevices(root)) {
    struct stat about;
    const bool is_device =
        ::stat((root + "/dev/" + device).c_str(), &about) == 0 && S_ISCHR(about.st_mode);
    numbers[std::stoul(device.substr(kGpuPrefix.size()))] = is_device ? about.st_rdev : 0;
  }
  std::vector<dev_t> ordered;
  for (const auto& [at, number] : numbers) ordered.push_back(number);
  return ordered;
}

std::string VisibleGpus(const std::function<const char*(const char*)>& environment,
                        const std::string& root) {
  std::set<std::string> parts;
  for (const std::string& device : GpuDevices(root)) parts.insert(device);
  // These choose among the devices, or parts of one (MIG).
  for (const char* variable : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"})
    if (const char* value = environment(variable))
      parts.insert(std::string(variable) + "=" + value);
  std::string text;
  for (const std::string& part : parts) text += part + "\n";
  return text;
}

}  // namespace renzan
