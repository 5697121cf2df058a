#include "renzan/cli/cluster/daemon_access.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/verbs.h"
#include "renzan/cluster/client/credential.h"
#include "renzan/cluster/client/paths.h"

namespace renzan {

void AddSocketOption(CLI::App& verb, std::string& socket) {
  verb.add_option("--socket", socket,
                  "The daemon's socket, or https://HOST:PORT (default: $RENZAN_SOCKET, else the "
                  "address in $RENZAN_TOKEN_FILE)");
}

namespace {

void WarnOfReaders(const std::string& token_file) {
  struct stat about;
  if (::stat(token_file.c_str(), &about) == 0 && (about.st_mode & 077) != 0)
    LogWarning("other users may read your token: `chmod 600 {}`", token_file);
}

}  // namespace

const char* EnvironmentVariable(const char* name) { return std::getenv(name); }

client::Endpoint EndpointOf(const std::string& flag) {
  std::string socket = flag;
  if (const char* given = EnvironmentVariable("RENZAN_SOCKET"); socket.empty() && given != nullptr)
    socket = given;
  const std::string token_file = client::TokenFile(EnvironmentVariable);
  if (socket.empty() && !token_file.empty()) socket = client::ReadCredential(token_file).address;
  if (socket.empty())
    return client::SocketPath(EnvironmentVariable, client::StateDirectory(EnvironmentVariable));
  if (!client::IsTcpAddress(socket)) return socket;
  if (token_file.empty())
    Fail(ErrorCode::kNoPermission,
         "{} needs a token: ask its operator for one (`renzan cluster token create`), and set "
         "RENZAN_TOKEN_FILE to its file",
         socket);
  WarnOfReaders(token_file);
  return {socket, token_file};
}

std::string HistoryText(const cluster::Document& history) {
  const cluster::Document& first = history.at("first_ended");
  return fmt::format(
      "{}{}, {} in state.db", Counted(history.at("ended_jobs").get<int64_t>(), "ended job"),
      first.is_null() ? "" : fmt::format(" since {}", LocalTimeText(first.get<int64_t>(), 0)),
      MebibytesText((history.at("database_bytes").get<int64_t>() + (1 << 20) - 1) >> 20));
}

std::string RetentionText(const cluster::Document& history) {
  const auto kept = [&](const char* key) {
    const int64_t ms = history.at(key);
    return ms == 0 ? "forever" : fmt::format("for {}", DurationText(ms));
  };
  return fmt::format("kept {}, those that left only output {}", kept("keep_ended_for_ms"),
                     kept("keep_output_for_ms"));
}

DaemonFacts FactsOfDaemon() {
  constexpr double kPatienceSeconds = 5;
  try {
    client::Endpoint endpoint = EndpointOf("");
    if (client::IsTcpAddress(endpoint.socket)) return {};  // of another machine, perhaps
    client::Client daemon(std::move(endpoint), kPatienceSeconds);
    const auto status = cluster::Document::parse(daemon.Get("/v1/status"));
    DaemonFacts facts;
    if (status.contains("disk")) facts.disk_trouble = status.at("disk").at("nearly_full");
    if (status.contains("history")) facts.history = HistoryText(status.at("history"));
    return facts;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace renzan
