#include "renzan/cluster/local/server/api_tcp.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/local/server/api_socket.h"

namespace renzan::cluster::local {
namespace {

constexpr size_t kTokenBytes = 32;

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses Resolve(const std::string& host_port) {
  const size_t colon = host_port.rfind(':');
  std::string host = host_port.substr(0, std::min(colon, host_port.size()));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (colon == std::string::npos || host.empty() || colon + 1 == host_port.size())
    Fail(ErrorCode::kUsage, "--listen {}: expected HOST:PORT, as in 127.0.0.1:7070", host_port);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), host_port.c_str() + colon + 1, &hints, &found);
  if (error != 0)
    Fail(ErrorCode::kUsage, "--listen {}: {}: expected HOST:PORT, as in 127.0.0.1:7070", host_port,
         ::gai_strerror(error));
  return {found, ::freeaddrinfo};
}

// Writes a new token to the file, which gets its mode before its content.
std::string MakeToken(const std::string& path) {
  unsigned char random[kTokenBytes];
  if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
    FailErrno(errno, "cannot generate a token");
  std::string token;
  for (const unsigned char byte : random) token += fmt::format("{:02x}", byte);
  const mode_t mask = ::umask(0177);
  try {
    WriteFileAtomically(path, token + "\n");
  } catch (...) {
    ::umask(mask);
    throw;
  }
  ::umask(mask);
  return token;
}

}  // namespace

int ListenOnTcp(const std::string& host_port) {
  const Addresses addresses = Resolve(host_port);
  int why = 0;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    const int fd = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    // Connections of an earlier daemon must not block the port.
    if (fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        ::bind(fd, each->ai_addr, each->ai_addrlen) == 0 && ::listen(fd, kListenBacklog) == 0)
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

bool IsTcp(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
         address.ss_family != AF_UNIX;
}

std::string LoadToken(const std::string& path) {
  if (!FileExists(path)) return MakeToken(path);
  struct stat about;
  if (::stat(path.c_str(), &about) != 0) FailErrno(errno, "cannot stat " + path);
  if (about.st_uid != ::geteuid() || (about.st_mode & 077) != 0)
    Fail(ErrorCode::kNoPermission,
         "other users can read {}: delete it, and the daemon creates a new token", path);
  std::string token = ReadFile(path);
  while (!token.empty() && token.back() == '\n') token.pop_back();
  if (token.size() != 2 * kTokenBytes)
    Fail(ErrorCode::kData,
         "{} does not contain a valid token: delete it, and the daemon creates a new one", path);
  return token;
}

bool HasToken(const char* authorization, const std::string& token) {
  const std::string expected = "Bearer " + token;
  const std::string given = authorization != nullptr ? authorization : "";
  unsigned char differs = given.size() != expected.size();
  for (size_t at = 0; at < expected.size(); ++at)
    differs |= static_cast<unsigned char>(expected[at] ^ (at < given.size() ? given[at] : 0));
  return differs == 0;
}

}  // namespace renzan::cluster::local
