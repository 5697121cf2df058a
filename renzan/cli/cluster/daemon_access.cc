#include "renzan/cli/cluster/daemon_access.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/cli/verbs.h"
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

std::string DiskTroubleOfDaemon() {
  constexpr double kPatienceSeconds = 5;
  try {
    client::Endpoint endpoint = EndpointOf("");
    if (client::IsTcpAddress(endpoint.socket)) return "";  // of another machine, perhaps
    client::Client daemon(std::move(endpoint), kPatienceSeconds);
    const auto status = nlohmann::json::parse(daemon.Get("/v1/status"));
    return status.contains("disk") ? status.at("disk").at("nearly_full").get<std::string>() : "";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace renzan
