// renzan cluster down

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/file/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cluster/client/client.h"
#include "renzan/cluster/client/paths.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kShutdownTimeoutSeconds = 60;

void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

// Ids of unfinished jobs, pending ones first: otherwise they would start in place of those that
// were just cancelled.
std::vector<int64_t> JobsInOrder(client::Client& client) {
  std::vector<int64_t> waiting, others;
  const Json answer = Json::parse(client.Get("/v1/jobs"));
  for (const Json& job : answer.at("jobs"))
    if (job.at("ended").is_null())
      (job.at("state") == "pending" ? waiting : others).push_back(job.at("id"));
  waiting.insert(waiting.end(), others.begin(), others.end());
  return waiting;
}

void CancelAll(client::Client& client) {
  for (const int64_t id : JobsInOrder(client)) {
    try {
      client.Post(fmt::format("/v1/jobs/{}/cancel", id), "{}");
    } catch (const Error& error) {
      // It may have ended by itself.
      if (error.code() != ErrorCode::kUsage && error.code() != ErrorCode::kNoInput) throw;
    }
  }
  while (!JobsInOrder(client).empty()) Pause();
}

void Down(const client::Endpoint& endpoint, bool stop_jobs) {
  client::Client client(endpoint);
  const Json status = Json::parse(client.Get("/v1/status"));
  const std::string state = status.at("state_dir");
  // Before any of their own jobs is cancelled.
  if (status.contains("you") && !status.at("you").at("administrator"))
    Fail(ErrorCode::kNoPermission,
         "{}: only the operator (the user whose daemon this is, or root) may end it, and never "
         "with a token",
         endpoint.socket);
  if (stop_jobs) CancelAll(client);
  const bool leaves_jobs = !JobsInOrder(client).empty();
  client.Post("/v1/shutdown", "{}");
  const std::string& socket = endpoint.socket;
  // The next daemon needs the lock, which is released after the socket. A lock on another machine
  // cannot be checked.
  if (!client::IsTcpAddress(socket) &&
      !FileLock::WaitForLock(state + "/lock", "cluster down", kShutdownTimeoutSeconds))
    Fail(ErrorCode::kUnavailable,
         "the daemon at {} is still running ({}) after a shutdown request: try again", socket,
         FileLock::OwnerOf(state + "/lock"));
  LogInfo("the daemon at {} has ended{}", socket,
          leaves_jobs ? "; running workers continue, and the next `renzan cluster up` finds all "
                        "jobs again: `renzan cluster down --stop-jobs` after that ends them"
                      : "");
}

}  // namespace

void AddClusterDownVerb(CLI::App& cluster) {
  struct DownFlags {
    ClusterFlags cluster;
    bool stop_jobs = false;
  };
  CLI::App* verb = cluster.add_subcommand("down", "Stop the daemon; running workers continue");
  const auto flags = std::make_shared<DownFlags>();
  verb->add_flag("--stop-jobs", flags->stop_jobs,
                 "First cancel all jobs, pending and running, and wait until they have ended");
  AddThisMachineOptions(*verb, flags->cluster);
  verb->footer(
      "The next `renzan cluster up` finds the jobs and their workers again.\n"
      "Example: renzan cluster down");
  verb->callback([flags] {
    RequireThisMachine(flags->cluster, "cluster down");
    Down(EndpointOf(flags->cluster.socket), flags->stop_jobs);
  });
}

}  // namespace renzan
