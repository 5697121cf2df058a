#include "renzan/cluster/local/server/api_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {
namespace {

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.size() >= sizeof address.sun_path)
    Fail(
        ErrorCode::kConfig,
        "the socket's path has {} bytes, but at most {} are allowed: {}; choose a shorter one with "
        "--socket or $RENZAN_SOCKET",
        path.size(), sizeof address.sun_path - 1, path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

int NewSocket() {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) FailErrno(errno, "cannot create a socket");
  return fd;
}

// The daemon of a socket is dead if nobody accepts connections.
void RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat about;
  if (::lstat(path.c_str(), &about) != 0) return;
  if (!S_ISSOCK(about.st_mode))
    Fail(ErrorCode::kCantCreate, "{} exists and is not a socket: choose another path with --socket",
         path);
  const int probe = NewSocket();
  const bool answers =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  if (answers)
    Fail(ErrorCode::kUnavailable,
         "another daemon listens on {}: end it with `renzan cluster down`, or choose another "
         "socket with --socket",
         path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) FailErrno(errno, "cannot remove " + path);
}

ucred CredentialsOf(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    Fail(ErrorCode::kOsError, "cannot get the user of a connection: {}", std::strerror(errno));
  return credentials;
}

}  // namespace

int ListenOn(const std::string& path, bool for_others) {
  const sockaddr_un address = AddressOf(path);
  CreateDirectories(std::filesystem::path(path).parent_path());
  RemoveStale(path, address);
  const int fd = NewSocket();
  // With the right mode from the start.
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::umask(mask);
  if (bound != 0 || ::listen(fd, kListenBacklog) != 0 ||
      (for_others && ::chmod(path.c_str(), 0666) != 0)) {
    const int why = bound != 0 ? error : errno;
    ::close(fd);
    Fail(ErrorCode::kCantCreate, "cannot listen on {}: {}", path, std::strerror(why));
  }
  return fd;
}

uid_t PeerUidOf(int fd) { return CredentialsOf(fd).uid; }

Caller PeerOf(int fd) {
  const ucred credentials = CredentialsOf(fd);
  return {.uid = credentials.uid, .gid = credentials.gid, .name = UserName(credentials.uid)};
}

bool IsAllowed(const Caller& caller, const std::vector<std::string>& allow_users) {
  const uid_t own = ::geteuid();
  if (caller.uid == own || caller.uid == 0) return true;
  if (own != 0) return false;
  return std::any_of(allow_users.begin(), allow_users.end(),
                     [&](const std::string& name) { return name == "*" || name == caller.name; });
}

}  // namespace renzan::cluster::local
