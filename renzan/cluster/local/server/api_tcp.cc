#include "renzan/cluster/local/server/api_tcp.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan::cluster::local {
namespace {

constexpr size_t kTokenBytes = 32;

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
