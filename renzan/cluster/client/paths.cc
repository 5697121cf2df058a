#include "renzan/cluster/client/paths.h"

#include <sys/un.h>

#include "renzan/base/error.h"

namespace renzan::cluster::client {
namespace {

std::string Value(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string StateDirectory(const Environment& environment) {
  if (const std::string state = Value(environment, "RENZAN_STATE_DIR"); !state.empty())
    return state;
  if (const std::string xdg = Value(environment, "XDG_STATE_HOME"); !xdg.empty())
    return xdg + "/renzan";
  if (const std::string home = Value(environment, "HOME"); !home.empty())
    return home + "/.local/state/renzan";
  Fail(
      ErrorCode::kConfig,
      "no directory for the cluster's state, because HOME is not set: name one with --state DIR or "
      "RENZAN_STATE_DIR");
}

std::string SocketPath(const Environment& environment, const std::string& state_directory) {
  const std::string socket = Value(environment, "RENZAN_SOCKET");
  return socket.empty() ? state_directory + "/socket" : socket;
}

std::string TokenFile(const Environment& environment) {
  return Value(environment, "RENZAN_TOKEN_FILE");
}

bool IsUrl(const std::string& socket) {
  return socket.starts_with("https://") || socket.starts_with("http://");
}

bool IsTcpAddress(const std::string& socket) { return socket.starts_with("https://"); }

void CheckSocketPath(const std::string& path) {
  constexpr size_t kMaxPath = sizeof(sockaddr_un{}.sun_path) - 1;
  if (path.size() > kMaxPath)
    Fail(ErrorCode::kConfig,
         "{}: the socket's path has {} bytes, but may have at most {}: choose a shorter one with "
         "--socket PATH or RENZAN_SOCKET",
         path, path.size(), kMaxPath);
}

}  // namespace renzan::cluster::client
