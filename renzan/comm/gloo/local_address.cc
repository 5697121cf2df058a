#include "renzan/comm/gloo/local_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "renzan/base/error.h"

namespace renzan {

std::string LocalAddressTowards(const Rendezvous& rendezvous) {
  const std::string& host = rendezvous.master_addr;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(rendezvous.master_port);
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list); error != 0)
    Fail(ErrorCode::kUnavailable, "cannot resolve MASTER_ADDR '{}': {}", host, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(list, freeaddrinfo);

  // Connecting a datagram socket sends nothing, it only asks the routing table.
  int error = 0;
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    const int fd = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      error = errno;
      continue;
    }
    sockaddr_storage local = {};
    socklen_t length = sizeof(local);
    char digits[NI_MAXHOST];
    const bool found = connect(fd, address->ai_addr, address->ai_addrlen) == 0 &&
                       getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) == 0 &&
                       getnameinfo(reinterpret_cast<sockaddr*>(&local), length, digits,
                                   sizeof(digits), nullptr, 0, NI_NUMERICHOST) == 0;
    error = errno;
    close(fd);
    if (found) return digits;
  }
  Fail(ErrorCode::kUnavailable, "no route to MASTER_ADDR '{}': {}", host, std::strerror(error));
}

}  // namespace renzan
