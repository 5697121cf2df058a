#include "renzan/cli/cluster/daemon_access.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "renzan/cluster/client/paths.h"

namespace renzan {

void AddSocketOption(CLI::App& verb, std::string& socket) {
  verb.add_option("--socket", socket,
                  "The daemon's socket, or http://HOST:PORT (default: $RENZAN_SOCKET)");
}

const char* EnvironmentVariable(const char* name) { return std::getenv(name); }

client::Endpoint EndpointOf(const std::string& flag) {
  std::string socket = flag;
  if (const char* given = EnvironmentVariable("RENZAN_SOCKET"); socket.empty() && given != nullptr)
    socket = given;
  if (!socket.empty() && !client::IsTcpAddress(socket)) return socket;
  const std::string state = client::StateDirectory(EnvironmentVariable);
  if (socket.empty()) return client::SocketPath(EnvironmentVariable, state);
  return {socket, client::TokenPath(EnvironmentVariable, state)};
}

}  // namespace renzan
