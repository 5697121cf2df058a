#include "renzan/base/host.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace renzan {

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

std::string VisibleGpus(const std::function<const char*(const char*)>& environment,
                        const std::string& root) {
  std::set<std::string> parts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/dev", error)) {
    const std::string name = entry.path().filename();  // nvidia0, nvidiactl, nvidia-uvm
    if (name.starts_with("nvidia")) parts.insert(name);
  }
  // These choose among the devices, or parts of one (MIG).
  for (const char* variable : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"})
    if (const char* value = environment(variable))
      parts.insert(std::string(variable) + "=" + value);
  std::string text;
  for (const std::string& part : parts) text += part + "\n";
  return text;
}

}  // namespace renzan
