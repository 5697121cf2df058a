// renzan cluster up [CONFIG.yaml]

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/build_id.h"
#include "renzan/base/clock.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/base/this_program.h"
#include "renzan/cli/cluster/cluster_access.h"
#include "renzan/cli/cluster/daemon_access.h"
#include "renzan/cli/cluster/daemon_process.h"
#include "renzan/cli/cluster/this_machine.h"
#include "renzan/cli/cluster/verbs.h"
#include "renzan/cli/machine/installation.h"
#include "renzan/cli/text/amounts_text.h"
#include "renzan/cli/working_directory.h"
#include "renzan/cluster/client/client.h"
#include "renzan/cluster/client/paths.h"
#include "renzan/cluster/local/daemon.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

struct UpFlags {
  std::string config, state, listen, record;
  ClusterFlags cluster;
  std::vector<std::string> overrides, allow_users;
  int nodes = 1;
  double cpus_per_node = -1;
  int64_t gpus_per_node = -1;
  bool simulated = false, foreground = false, print_config = false;
};

cluster::spec::ClusterConfig ReadConfig(const CLI::App& verb, const UpFlags& flags) {
  const bool pretends = verb.count("--nodes") + verb.count("--cpus-per-node") +
                            verb.count("--gpus-per-node") + verb.count("--simulated") >
                        0;
  if (flags.config.empty()) {
    if (!flags.overrides.empty())
      Fail(ErrorCode::kUsage, "--set overrides keys of a configuration file: name one");
    cluster::spec::ClusterConfig config =
        ThisMachine(flags.nodes, flags.cpus_per_node, flags.gpus_per_node);
    config.simulated = flags.simulated;
    return config;
  }
  if (pretends)
    Fail(ErrorCode::kUsage, "name a configuration file or --nodes and the like, not both");
  return cluster::spec::ReadClusterConfig(flags.config, flags.overrides);
}

void CheckAllowedUsers(const std::vector<std::string>& users) {
  if (!users.empty() && ::geteuid() != 0)
    Fail(ErrorCode::kUsage,
         "--allow-user {}: only a daemon that runs as root can run jobs of other users", users[0]);
  for (const std::string& user : users)
    if (user != "*" && ::getpwnam(user.c_str()) == nullptr)
      Fail(ErrorCode::kUsage, "--allow-user {}: no such user", user);
}

// Warns of members of queues who do not exist here, or may not use the daemon of root. Throws Error
// kConfig if a queue has no others than those who do not exist.
void CheckMembers(const cluster::spec::ClusterConfig& config,
                  const std::vector<std::string>& allowed) {
  std::map<std::string, cluster::QueueRights> rights;
  for (const auto& [name, queue] : config.queues) rights[name] = queue.rights;
  for (const std::string& nobody :
       cluster::spec::CheckMembers(rights, cluster::local::WhyNoUser, cluster::local::WhyNoGroup))
    LogWarning("{}", nobody);
  if (::geteuid() != 0) return;
  const auto is_allowed = [&](const std::string& name) {
    return std::find(allowed.begin(), allowed.end(), name) != allowed.end();
  };
  for (const auto& [queue, its] : rights)
    if (its.members && !is_allowed("*"))
      for (const std::string& user : its.members->users)
        if (user != "root" && !is_allowed(user) && cluster::local::WhyNoUser(user).empty())
          LogWarning(
              "queues.{}.members.users has '{}', whom the daemon does not serve: add "
              "--allow-user {}",
              queue, user, user);
}

cluster::local::DaemonOptions Options(const CLI::App& verb, const UpFlags& flags) {
  CheckAllowedUsers(flags.allow_users);
  cluster::local::DaemonOptions options;
  options.config = ReadConfig(verb, flags);
  if (!options.config.simulated) {
    options.gpus = GpuNumbers();
    cluster::spec::RequireGpus(options.config, std::ssize(*options.gpus));
  }
  CheckMembers(options.config, flags.allow_users);
  // Absolute, because the daemon changes its working directory.
  options.state_dir =
      AbsolutePath(flags.state.empty() ? client::StateDirectory(EnvironmentVariable) : flags.state);
  const char* const variable = EnvironmentVariable("RENZAN_SOCKET");
  for (const std::string& socket : {flags.cluster.socket, std::string(variable ? variable : "")})
    if (client::IsUrl(socket))
      Fail(ErrorCode::kUsage,
           "{}: a daemon needs a Unix socket: give its path (--socket, RENZAN_SOCKET), and use "
           "--listen HOST:PORT to add TCP",
           socket);
  options.socket = AbsolutePath(flags.cluster.socket.empty()
                                    ? client::SocketPath(EnvironmentVariable, options.state_dir)
                                    : flags.cluster.socket);
  client::CheckSocketPath(options.socket);
  options.listen = flags.listen;
  if (!flags.record.empty()) options.record = AbsolutePath(flags.record);
  options.program = fmt::format("renzan {} (build {})", RENZAN_VERSION, BuildId());
  options.supervisor = SupervisorProgram();
  options.renzan = ThisProgram();
  options.allow_users = flags.allow_users;
  return options;
}

// A second daemon would also fail to get the lock, but this message is more helpful.
void RefuseSecond(const std::string& socket) {
  std::string status;
  try {
    status = client::Client(socket, 5).Get("/v1/status");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable) return;
    throw;
  }
  Fail(ErrorCode::kUnavailable,
       "a daemon is already running at {} (process {}): end it with `renzan cluster down`, or "
       "choose another --state and --socket",
       socket, Json::parse(status).value("pid", Json()).dump());
}

// Nobody reads the documents of each version.
void WarnOfRemovals(const Json& history) {
  const Json& first = history.at("first_ended");
  const int64_t keep = history.at("keep_output_for_ms");
  if (first.is_null() || keep == 0 || SystemClock().UnixMs() - first.get<int64_t>() < keep) return;
  LogWarning(
      "in an hour, the daemon begins to remove jobs that ended more than {} ago and have left only "
      "their output (retention.keep_output_for: 0s keeps them)",
      DurationText(keep));
}

void PrintCluster(const cluster::local::DaemonOptions& options) {
  client::Client client(options.socket);
  const Json answer = Json::parse(client.Get("/v1/nodes"));
  const Json status = Json::parse(client.Get("/v1/status"));
  fmt::print("socket {}\n", options.socket);
  WarnOfRemovals(status.at("history"));
  if (const Json& tcp = status.at("tcp"); !tcp.is_null())
    fmt::print("tcp    {}, for users with a token (`renzan cluster token create --user NAME`)\n",
               tcp.get<std::string>());
  for (const Json& node : answer.at("nodes")) {
    const Json& capacity = node.at("capacity");
    fmt::print("node   {}: {}, {} memory, {}\n", node.at("name").get<std::string>(),
               Counted(NumberText(capacity.at("cpu").get<double>()), "core"),
               MebibytesText(capacity.at("memory_mib").get<int64_t>()),
               Counted(capacity.at("gpu").dump(), "GPU"));
  }
}

void PrintResolved(cluster::spec::ClusterConfig config) {
  if (config.queues.empty()) config.queues["default"];  // what an empty list means
  fmt::print("{}", cluster::spec::PrintClusterConfig(std::move(config), /*with_docs=*/true));
}

void Up(const CLI::App& verb, const UpFlags& flags) {
  if (flags.print_config) return PrintResolved(ReadConfig(verb, flags));
  RequireThisMachine(flags.cluster, "cluster up");
  cluster::local::DaemonOptions options = Options(verb, flags);
  RefuseSecond(options.socket);
  cluster::local::MakeStateDirectory(options);
  if (flags.foreground) return cluster::local::RunDaemon(options);
  StartDetached(options.state_dir + "/daemon.log", [&options](int ready_fd) {
    options.ready_fd = ready_fd;
    cluster::local::RunDaemon(options);
  });
  PrintCluster(options);
}

}  // namespace

void AddClusterUpVerb(CLI::App& cluster) {
  CLI::App* verb = cluster.add_subcommand("up", "Start the daemon");
  const auto flags = std::make_shared<UpFlags>();
  verb->add_option("config", flags->config,
                   "YAML file with pools, queues and users; default: one node, this machine");
  verb->add_option("--set", flags->overrides, "Override one key: --set pools.own.nodes=8")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_option("--nodes", flags->nodes, "Divide this machine into this many nodes")
      ->check(CLI::Range(1, cluster::spec::kMaxWorkers));
  verb->add_option("--cpus-per-node", flags->cpus_per_node,
                   "CPU cores of each node; default: this machine's, divided equally")
      ->check(CLI::Range(0.001, 1e5));
  verb->add_option("--gpus-per-node", flags->gpus_per_node,
                   "GPUs of each node, assigned by CUDA_VISIBLE_DEVICES; default: this machine's")
      ->check(CLI::Range(int64_t{0}, int64_t{1000}));
  verb->add_flag("--simulated", flags->simulated,
                 "The nodes stand in for others: they may have more GPUs than this machine, and "
                 "each numbers its GPUs from 0");
  verb->add_option("--state", flags->state,
                   "Directory of jobs, logs and the database (default: $RENZAN_STATE_DIR)");
  AddThisMachineOptions(*verb, flags->cluster);
  verb->add_option("--listen", flags->listen,
                   "HOST:PORT for TCP clients with a token (cluster token create), over TLS");
  verb->add_option(
          "--record", flags->record,
          "Keep the last scheduling cycles that decided anything in this file, for `renzan "
          "cluster replay`; the previous one becomes FILE.1")
      ->type_name("FILE");
  verb->add_option("--allow-user", flags->allow_users,
                   "Another user who may submit jobs; only for a daemon that runs as root")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--print-config", flags->print_config,
                 "Print the cluster as YAML with every key and its default, and exit");
  verb->add_flag("--foreground", flags->foreground, "Run in the foreground and log to stderr");
  verb->footer(
      "Returns once the daemon is ready. The daemon logs to STATE/daemon.log.\n"
      "Examples:\n"
      "  renzan cluster up --nodes 4 --gpus-per-node 8 --simulated --print-config > cluster.yaml\n"
      "  renzan cluster up cluster.yaml\n"
      "  renzan cluster up --nodes 4 --gpus-per-node 8 --simulated");
  verb->callback([verb, flags] { Up(*verb, *flags); });
}

}  // namespace renzan
