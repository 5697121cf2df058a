#include "renzan/comm/gloo/local_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "renzan/base/error.h"

namespace renzan {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses Resolve(const std::string& host, int port, int socket_type) {
  addrinfo hints = {};
  hints.ai_socktype = socket_type;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
      error != 0)
    Fail(ErrorCode::kUnavailable, "cannot resolve MASTER_ADDR '{}': {}", host, gai_strerror(error));
  return {list, freeaddrinfo};
}

// Empty if the system cannot tell.
std::string Digits(const sockaddr* address, socklen_t length) {
  char digits[NI_MAXHOST];
  const bool found =
      getnameinfo(address, length, digits, sizeof(digits), nullptr, 0, NI_NUMERICHOST) == 0;
  return found ? digits : "";
}

// Only an address of this machine can be bound.
bool IsOurs(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool bound = bind(fd, address.ai_addr, address.ai_addrlen) == 0;
  close(fd);
  return bound;
}

}  // namespace

std::string LocalAddressTowards(const Rendezvous& rendezvous) {
  const std::string& host = rendezvous.master_addr;
  const Addresses addresses = Resolve(host, rendezvous.master_port, SOCK_DGRAM);
  // Connecting a datagram socket sends nothing; it only consults the routing table.
  int error = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const int fd = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      error = errno;
      continue;
    }
    sockaddr_storage local = {};
    socklen_t length = sizeof(local);
    const bool connected = connect(fd, address->ai_addr, address->ai_addrlen) == 0 &&
                           getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) == 0;
    error = errno;
    close(fd);
    const std::string digits =
        connected ? Digits(reinterpret_cast<const sockaddr*>(&local), length) : "";
    if (!digits.empty()) return digits;
  }
  Fail(ErrorCode::kUnavailable, "no route to MASTER_ADDR '{}': {}", host, std::strerror(error));
}

std::optional<std::string> ListenAddress(const std::string& host) {
  const Addresses addresses = Resolve(host, 0, SOCK_STREAM);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const std::string digits = Digits(address->ai_addr, address->ai_addrlen);
    const bool reachable = !IsLoopback(digits) || IsLoopback(host);
    if (!digits.empty() && reachable && IsOurs(*address)) return digits;
  }
  return std::nullopt;
}

}  // namespace renzan
