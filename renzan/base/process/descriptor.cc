#include "renzan/base/process/descriptor.h"

#include <unistd.h>

namespace renzan {

void Descriptor::Close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace renzan
