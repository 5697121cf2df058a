#include "renzan/base/host.h"

#include <unistd.h>

#include <fstream>

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

}  // namespace renzan
