#include "renzan/base/host.h"

#include <unistd.h>

namespace renzan {

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace renzan
