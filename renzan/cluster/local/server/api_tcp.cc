#include "renzan/cluster/local/server/api_tcp.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/host.h"
#include "renzan/base/process/tcp_listener.h"
#include "renzan/base/tls/make_certificate.h"

namespace renzan::cluster::local {
namespace {

constexpr double kLifeSeconds = 10 * 365.25 * 24 * 3600;

std::string MakeKey(const std::string& path) {
  std::string key = MakePrivateKey();
  WriteFileAtomically(path, key, 0600);
  return key;
}

std::string LoadKey(const std::string& path) {
  if (IsMissing(path)) return MakeKey(path);
  struct stat about;
  if (::stat(path.c_str(), &about) != 0) FailErrno(errno, "cannot stat " + path);
  if (about.st_uid != ::geteuid() || (about.st_mode & 077) != 0)
    Fail(ErrorCode::kNoPermission,
         "other users can read the daemon's key {}, and stand in for it: remove it, and the daemon "
         "makes a new one when it starts; then every user needs a new token",
         path);
  return ReadFile(path);
}

}  // namespace

bool IsTcp(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
         address.ss_family != AF_UNIX;
}

std::string BearerOf(std::string_view authorization) {
  constexpr std::string_view kBearer = "Bearer ";
  return authorization.starts_with(kBearer) ? std::string(authorization.substr(kBearer.size()))
                                            : "";
}

std::string UrlForClients(int listen_fd) {
  std::string url = "https" + UrlOf(listen_fd).substr(4);
  for (const std::string_view all : {"//0.0.0.0:", "//[::]:"})
    if (const size_t at = url.find(all); at != std::string::npos)
      url.replace(at, all.size(), "//" + HostName() + ":");
  return url;
}

std::string MakePrivateDirectory(const std::string& state_dir) {
  std::string path = state_dir + "/tcp";
  CreateDirectories(path);
  // Files there get their own mode only once they have been written.
  if (::chmod(path.c_str(), 0700) != 0) FailErrno(errno, "cannot change the mode of " + path);
  return path;
}

TcpIdentity LoadTcpIdentity(const std::string& path, double unix_seconds) {
  TcpIdentity identity{.tls = {.certificate = {}, .key = LoadKey(path)}, .pin = {}};
  try {
    identity.pin = PublicKeyPin(identity.tls.key);
    identity.tls.certificate =
        MakeSelfSignedCertificate(identity.tls.key, HostName(), unix_seconds, kLifeSeconds);
  } catch (const Error& error) {
    Fail(ErrorCode::kData,
         "{}: {}: remove it, and the daemon makes a new key when it starts; then every user needs "
         "a new token",
         path, error.what());
  }
  return identity;
}

}  // namespace renzan::cluster::local
