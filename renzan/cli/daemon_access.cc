#include "renzan/cli/daemon_access.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "renzan/base/clock.h"
#include "renzan/cluster/client/places.h"

namespace renzan {

void AddSocketOption(CLI::App& verb, std::string& socket) {
  verb.add_option("--socket", socket, "The daemon's socket (default: $RENZAN_SOCKET)");
}

const char* EnvironmentVariable(const char* name) { return std::getenv(name); }

std::string SocketOf(const std::string& flag) {
  if (!flag.empty()) return flag;
  const char* const socket = EnvironmentVariable("RENZAN_SOCKET");
  if (socket != nullptr && *socket != 0) return socket;
  return cluster::SocketPath(EnvironmentVariable, cluster::StateDirectory(EnvironmentVariable));
}

void PrintAnswer(const std::string& json) {
  fmt::print("{}\n", nlohmann::ordered_json::parse(json).dump(2));
}

int64_t UnixMs() { return static_cast<int64_t>(SystemClock().UnixSeconds() * 1000); }

}  // namespace renzan
