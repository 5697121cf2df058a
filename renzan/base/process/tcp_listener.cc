#include "renzan/base/process/tcp_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "renzan/base/error.h"

namespace renzan {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses Resolve(const std::string& host_port, const char* option) {
  const size_t colon = host_port.rfind(':');
  std::string host = host_port.substr(0, std::min(colon, host_port.size()));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (colon == std::string::npos || host.empty() || colon + 1 == host_port.size())
    Fail(ErrorCode::kUsage, "{} {}: expected HOST:PORT, as in 127.0.0.1:7070", option, host_port);
  // getaddrinfo() takes a larger number modulo 65536.
  const std::string port = host_port.substr(colon + 1);
  int number = 0;
  const auto [end, error_code] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error_code != std::errc() || end != port.data() + port.size() || number < 0 || number > 65535)
    Fail(ErrorCode::kUsage,
         "{} {}: the port must be a number from 0 (any free port) to 65535: expected "
         "HOST:PORT, as in 127.0.0.1:7070",
         option, host_port);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0)
    Fail(ErrorCode::kUsage, "{} {}: {}: expected HOST:PORT, as in 127.0.0.1:7070", option,
         host_port, ::gai_strerror(error));
  return {found, ::freeaddrinfo};
}

}  // namespace

int ListenOnTcp(const std::string& host_port, const char* option) {
  const Addresses addresses = Resolve(host_port, option);
  int why = 0;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    const int fd = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    // Connections of an earlier process must not block the port.
    if (fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        ::bind(fd, each->ai_addr, each->ai_addrlen) == 0 && ::listen(fd, SOMAXCONN) == 0)
      return fd;
    why = errno;
    if (fd >= 0) ::close(fd);
  }
  Fail(ErrorCode::kCantCreate,
       "cannot listen on {}: {}: choose another port, or an address of this machine", host_port,
       std::strerror(why));
}

std::string UrlOf(int listen_fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getsockname(listen_fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    Fail(ErrorCode::kOsError, "cannot get the address of the TCP socket");
  if (address.ss_family == AF_INET6) return fmt::format("http://[{}]:{}", host, port);
  return fmt::format("http://{}:{}", host, port);
}

}  // namespace renzan
