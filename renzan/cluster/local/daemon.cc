#include "renzan/cluster/local/daemon.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include "renzan/base/clock.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_lock.h"
#include "renzan/base/log.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/base/process/signals.h"
#include "renzan/base/process/tcp_listener.h"
#include "renzan/cluster/core/explain/explain.h"
#include "renzan/cluster/core/schedule.h"
#include "renzan/cluster/core/validate/invariants.h"
#include "renzan/cluster/local/agent.h"
#include "renzan/cluster/local/cgroups.h"
#include "renzan/cluster/local/controller/controller.h"
#include "renzan/cluster/local/loop.h"
#include "renzan/cluster/local/server/api_server.h"
#include "renzan/cluster/local/server/api_socket.h"
#include "renzan/cluster/local/server/api_tcp.h"
#include "renzan/cluster/local/server/tokens.h"
#include "renzan/cluster/local/store/store.h"
#include "renzan/cluster/record/recorder.h"
#include "renzan/cluster/record/recording_file.h"

namespace renzan::cluster::local {
namespace {

// Other users cannot list the directories of a daemon. If they are served, they can reach their
// jobs' directories through them.
constexpr mode_t kPrivate = 0700, kMostOpen = 0711;

std::array<std::string, 2> DirectoriesOf(const DaemonOptions& options) {
  return {options.state_dir, options.state_dir + "/jobs"};
}

void SetMode(const std::string& path, mode_t mode) {
  if (::chmod(path.c_str(), mode) != 0) FailErrno(errno, "cannot change the mode of " + path);
}

std::unique_ptr<FileLock> LockState(const std::string& state_dir) {
  // A child of a daemon that was killed shares its lock until it calls exec.
  constexpr double kSeconds = 2;
  const std::string path = state_dir + "/lock";
  auto lock = FileLock::WaitForLock(path, fmt::format("pid {}", ::getpid()), kSeconds);
  if (!lock)
    Fail(ErrorCode::kUnavailable,
         "a daemon is already running with state directory {} ({}): end it with `renzan cluster "
         "down` (if its socket was removed, with `kill` and this number), or choose another "
         "directory with --state",
         state_dir, FileLock::OwnerOf(path));
  // Anyone who can read a lock file can hold the lock.
  SetMode(path, 0600);
  return lock;
}

bool HaveGroups(const std::map<std::string, spec::ClusterConfig::QueueConfig>& queues) {
  return std::any_of(queues.begin(), queues.end(), [](const auto& queue) {
    const auto& members = queue.second.rights.members;
    return members && !members->groups.empty();
  });
}

// A missing database is created only if there are no jobs.
void CheckDatabaseExists(const DaemonOptions& options, const std::string& database) {
  if (!FileExists(database) && !std::filesystem::is_empty(options.state_dir + "/jobs"))
    Fail(ErrorCode::kData,
         "{} is missing, but {}/jobs contains jobs: restore it, or start with another --state",
         database, options.state_dir);
}

// Every followed log needs six descriptors, every running job one: with the usual limit of 1024,
// users could prevent the daemon from starting jobs.
void RaiseFileLimit() {
  constexpr rlim_t kWanted = 16384;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, kWanted);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    LogWarning("cannot raise the limit of open files to {}: {}", limit.rlim_cur,
               std::strerror(errno));
}

// That of earlier versions, whose bearer was the daemon's owner.
void RemoveOldToken(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return;
  LogWarning(
      "{} is no longer used, and has been removed: over TCP, every user needs a token of their own "
      "(`renzan cluster token create --user NAME`)",
      path);
}

struct Tcp {
  int fd = -1;  // none
  std::string url = {};
  TcpIdentity identity = {};
};

// `address`: HOST:PORT; empty: nowhere.
Tcp ListenAt(const std::string& address, const std::string& directory, const Clock& clock) {
  if (address.empty()) return {};
  Tcp tcp{.fd = ListenOnTcp(address)};
  tcp.url = UrlForClients(tcp.fd);
  tcp.identity = LoadTcpIdentity(directory + "/key.pem", clock.UnixSeconds());
  return tcp;
}

void ReportReady(int fd, const std::string& socket) {
  if (fd < 0) return;
  const std::string line = socket + "\n";
  if (::write(fd, line.data(), line.size()) < 0)
    LogWarning("cannot report that the daemon is ready: its starter has ended");
  ::close(fd);
}

Enforced EnforcedBy(const DaemonOptions& options) {
  const std::vector<dev_t> gpus = options.gpus.value_or(std::vector<dev_t>());
  AttemptPlan::Cgroups cgroups = FindCgroups(options.config.cgroups, gpus);
  return {.memory = options.config.enforce_memory,
          .max_disk_mib = options.config.disk.max_per_job_mib(),
          .cgroups = std::move(cgroups),
          .gpus = gpus};
}

}  // namespace

void MakeStateDirectory(const DaemonOptions& options) {
  for (const std::string& path : DirectoriesOf(options)) {
    CreateDirectories(path);
    // The owner of the directory can place links where the daemon writes.
    struct stat about;
    if (::stat(path.c_str(), &about) != 0) FailErrno(errno, "cannot stat " + path);
    if (about.st_uid != ::geteuid())
      Fail(ErrorCode::kCantCreate,
           "{} belongs to another user (user id {}), who could redirect the daemon's files: choose "
           "another directory with --state, or change its owner to user id {}",
           path, about.st_uid, ::geteuid());
    // A running daemon may serve users who reach their jobs through it.
    SetMode(path, about.st_mode & kMostOpen);
  }
}

void RunDaemon(const DaemonOptions& options) {
  // Readers of our pipes and sockets may end at any moment.
  std::signal(SIGPIPE, SIG_IGN);
  // Before any thread is started, so that all of them block these signals.
  const SignalQueue signals({SIGTERM, SIGINT});
  RaiseFileLimit();
  MakeStateDirectory(options);
  const auto lock = LockState(options.state_dir);
  const bool serves_others = ::geteuid() == 0 && !options.allow_users.empty();
  for (const std::string& path : DirectoriesOf(options))
    SetMode(path, serves_others ? kMostOpen : kPrivate);
  const std::string database = options.state_dir + "/state.db";
  CheckDatabaseExists(options, database);
  const Clock& clock = SystemClock();
  const TimeMs now = clock.UnixMs();
  const Enforced enforced = EnforcedBy(options);
  std::optional<int64_t> machine_gpus;
  if (options.gpus) machine_gpus = std::ssize(*options.gpus);
  Store store(database);
  const auto agent = MakeLocalAgent(options.supervisor, options.renzan);
  const ScheduleOptions scheduling = spec::ScheduleOptionsOf(options.config);
  const auto schedule = [scheduling](const Snapshot& at) { return Schedule(at, scheduling); };
  const RetentionOptions retention{
      .keep_ended_ms = options.config.retention.keep_ended_ms(),
      .keep_output_ms = options.config.retention.keep_output_ms(),
      .keep_attempts = static_cast<int>(options.config.retention.keep_attempts)};
  record::Recorder recorder({.program = options.program, .writer = options.socket});
  std::optional<record::RecordingFile> recording;
  if (!options.record.empty()) recording.emplace(options.record, recorder);
  int64_t cycles = 0;
  const auto record_cycle = [&](const Snapshot& snapshot, const Decisions& decisions,
                                const std::function<record::JobName(JobId)>& name_of) {
    if (recording) recorder.Take({++cycles, scheduling, snapshot, decisions, name_of});
  };
  Controller controller({.state_dir = options.state_dir,
                         .uid = ::geteuid(),
                         .enforced = enforced,
                         .machine_gpus = machine_gpus,
                         .schedule = schedule,
                         .validate = Validate,
                         .why_infeasible = WhyInfeasible,
                         .limits = options.config.limits,
                         .retention = retention,
                         .node_health = options.config.node_health,
                         .artifacts_timeout_ms = options.config.artifacts_timeout_ms(),
                         .reserve_room = true,
                         .keep_free = options.config.disk.keep_free_bytes(),
                         .on_cycle = record_cycle},
                        spec::MakeSnapshot(options.config, now), store, *agent, clock);
  controller.Recover();

  const std::string tcp_dir = MakePrivateDirectory(options.state_dir);
  const Tcp tcp = ListenAt(options.listen, tcp_dir, clock);
  Tokens tokens(tcp_dir + "/tokens.json", options.allow_users, clock);
  RemoveOldToken(options.state_dir + "/token");
  const int listen_fd = ListenOn(options.socket, serves_others);
  const Descriptor server_ends(::eventfd(0, EFD_CLOEXEC));
  if (!server_ends) FailErrno(errno, "cannot create an eventfd");
  Loop loop(controller, signals.fd());
  {
    const ApiServer server({.loop = loop,
                            .state_dir = options.state_dir,
                            .uid = ::geteuid(),
                            .started = now,
                            .scheduling = scheduling,
                            .worker_classes = options.config.worker_classes,
                            .tcp = tcp.url,
                            .tcp_pin = tcp.identity.pin,
                            .tokens = &tokens,
                            .stop_fd = server_ends.get(),
                            .needs_groups = HaveGroups(options.config.queues)},
                           {.listen_fd = listen_fd, .tcp_fd = tcp.fd, .tls = tcp.identity.tls},
                           options.allow_users);
    LogInfo("the daemon (pid {}) listens on {}{}", ::getpid(), options.socket,
            tcp.url.empty() ? "" : " and " + tcp.url);
    ReportReady(options.ready_fd, options.socket);
    // Ends followed logs also if the loop throws because the store is corrupt.
    struct EndStreams {
      int fd;
      ~EndStreams() { ::eventfd_write(fd, 1); }
    } end_streams{server_ends.get()};
    loop.Serve();
  }
  ::unlink(options.socket.c_str());
  LogInfo("the daemon ends; jobs that still run, if any, continue");
}

}  // namespace renzan::cluster::local
