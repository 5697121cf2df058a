#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/cluster/local/agent.h"

namespace renzan::cluster::local {
namespace {

std::vector<gid_t> GroupsOf(uid_t uid, gid_t gid) {
  const passwd* user = ::getpwuid(uid);
  if (!user) return {gid};
  int count = 64;
  std::vector<gid_t> groups(count);
  while (::getgrouplist(user->pw_name, gid, groups.data(), &count) < 0)
    groups.resize(static_cast<size_t>(count));
  groups.resize(static_cast<size_t>(count));
  return groups;
}

struct User {
  uid_t uid;
  gid_t gid;
};

// Runs a program as that user, if we may choose; otherwise as ourselves.
pid_t StartChild(const char* program, const char* const* argv, std::optional<User> user) {
  const char* const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", nullptr};
  if (::geteuid() != 0) user.reset();
  const std::vector<gid_t> groups = user ? GroupsOf(user->uid, user->gid) : std::vector<gid_t>();
  const pid_t child = ::fork();
  if (child < 0) FailErrno(errno, fmt::format("cannot start {}", program));
  if (child > 0) return child;

  // Only async-signal-safe calls from here on.
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  if (user && (::setgroups(groups.size(), groups.data()) != 0 || ::setgid(user->gid) != 0 ||
               ::setuid(user->uid) != 0))
    ::_exit(126);
  ::execve(program, const_cast<char* const*>(argv), const_cast<char* const*>(environment));
  ::_exit(127);
}

class LocalAgent : public Agent {
 public:
  explicit LocalAgent(std::string keeper) : keeper_(std::move(keeper)) {}

  pid_t Start(const std::string& directory, const AttemptPlan& plan) override {
    return StartAttempt(keeper_, directory, plan);
  }
  AttemptReport Report(const std::string& directory) override { return ReportOn(directory); }
  void Stop(const std::string& directory, double grace_seconds) override {
    RequestStop(directory, grace_seconds);
  }
  void Checkpoint(const std::string& directory) override { RequestCheckpoint(directory); }
  void NodeLost(const std::string& directory, const std::string& node) override {
    ReportNodeLost(directory, node);
  }
  int CleanUp(const std::string& directory) override { return CleanUpAttempt(directory); }

  // cp and rm, because a fork of a process with threads may do little before it calls exec.
  pid_t StartCopying(const std::string& from, const std::string& to, uid_t uid,
                     gid_t gid) override {
    // --force: what an earlier one, cut short with the daemon, has left may be read-only.
    const char* const argv[] = {
        "cp", "-RPf", "--preserve=mode,timestamps", "-t", to.c_str(), "--", from.c_str(), nullptr};
    return StartChild("/bin/cp", argv, User{uid, gid});
  }

  // rm follows no links, also those that are put in its way while it works.
  pid_t StartRemoving(const std::vector<std::string>& directories) override {
    std::vector<const char*> argv = {"rm", "-rf", "--one-file-system", "--"};
    for (const std::string& directory : directories) argv.push_back(directory.c_str());
    argv.push_back(nullptr);
    return StartChild("/bin/rm", argv.data(), std::nullopt);
  }

  void StopCopying(pid_t child) override { ::kill(child, SIGKILL); }

  std::optional<int> Copied(pid_t child) override {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == 0) return std::nullopt;
    return ended == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::string keeper_;
};

}  // namespace

std::unique_ptr<Agent> MakeLocalAgent(const std::string& keeper) {
  return std::make_unique<LocalAgent>(keeper);
}

}  // namespace renzan::cluster::local
