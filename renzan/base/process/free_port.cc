#include "renzan/base/process/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "renzan/base/error.h"
#include "renzan/base/process/descriptor.h"

namespace renzan {

int FreePort() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket || bind(socket.get(), generic, length) != 0 ||
      getsockname(socket.get(), generic, &length) != 0)
    Fail(ErrorCode::kOsError, "cannot find a free port on 127.0.0.1: {}", std::strerror(errno));
  return ntohs(address.sin_port);
}

}  // namespace renzan
