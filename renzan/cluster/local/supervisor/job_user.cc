#include "renzan/cluster/local/supervisor/job_user.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"

namespace renzan::cluster::local {
namespace {

// Of an account's or a group's entry; a group may have thousands of members.
constexpr size_t kEntryBytes = 1 << 20;

struct Account {
  bool exists = false;
  std::string name, home = "/", shell = "/bin/sh";
};

Account AccountOf(uid_t uid) {
  std::vector<char> buffer(kEntryBytes);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return {.name = fmt::format("uid-{}", uid)};
  Account account{.exists = true, .name = entry.pw_name, .home = entry.pw_dir};
  if (*entry.pw_shell != 0) account.shell = entry.pw_shell;
  return account;
}

// Acts with the user's permissions while it is alive. Does nothing unless we are root.
class ActAs {
 public:
  explicit ActAs(const JobUser& user) : acts_(geteuid() == 0 && user.uid != 0) {
    if (!acts_) return;
    groups_.resize(static_cast<size_t>(getgroups(0, nullptr)));
    if (getgroups(static_cast<int>(groups_.size()), groups_.data()) < 0 ||
        setgroups(user.groups.size(), user.groups.data()) != 0 || setegid(user.gid) != 0 ||
        seteuid(user.uid) != 0)
      FailErrno(errno, fmt::format("cannot act as user {}", user.name));
  }
  ~ActAs() {
    if (!acts_) return;
    CHECK(seteuid(0) == 0 && setegid(getgid()) == 0 &&
          setgroups(groups_.size(), groups_.data()) == 0);
  }
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;

 private:
  bool acts_;
  std::vector<gid_t> groups_;
};

void MakeAndChown(const JobUser& user, const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0) FailErrno(errno, fmt::format("cannot create {}", path));
  // By descriptor, so that it is surely the new directory whose owner changes.
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const bool done = fd >= 0 && fchown(fd, user.uid, user.gid) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!done) FailErrno(error, fmt::format("cannot change the owner of {} to {}", path, user.name));
}

}  // namespace

std::string UserName(uid_t uid) { return AccountOf(uid).name; }

JobUser LookUpUser(uid_t uid, gid_t gid) {
  const Account account = AccountOf(uid);
  JobUser user;
  user.uid = uid;
  user.gid = gid;
  user.groups = {gid};
  user.name = account.name;
  user.home = account.home;
  user.shell = account.shell;
  if (!account.exists) return user;
  int count = 64;
  user.groups.resize(static_cast<size_t>(count));
  if (getgrouplist(account.name.c_str(), gid, user.groups.data(), &count) < 0) {
    user.groups.resize(static_cast<size_t>(count));
    getgrouplist(account.name.c_str(), gid, user.groups.data(), &count);
  }
  user.groups.resize(static_cast<size_t>(count));
  return user;
}

std::optional<JobUser> FindUser(const std::string& name) {
  std::vector<char> buffer(kEntryBytes);
  passwd entry{};
  passwd* found = nullptr;
  const int error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return LookUpUser(found->pw_uid, found->pw_gid);
  // Databases also say so for a name that they do not have (getpwnam(3)).
  if (error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM)
    return std::nullopt;
  Fail(ErrorCode::kOsError, "cannot look user '{}' up: {}", name, std::strerror(error));
}

std::vector<std::string> GroupNames(uid_t uid, gid_t gid) {
  std::vector<std::string> names;
  std::vector<char> buffer(kEntryBytes);
  for (const gid_t group : LookUpUser(uid, gid).groups) {
    ::group entry{};
    ::group* found = nullptr;
    const bool has_name =
        getgrgid_r(group, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
    names.push_back(has_name ? entry.gr_name : std::to_string(group));
  }
  return names;
}

std::string WhyNoUser(const std::string& name) {
  std::vector<char> buffer(kEntryBytes);
  passwd entry{};
  passwd* found = nullptr;
  const int error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return "";
  if (error == 0) return "there is no such user";
  LogWarning("cannot look user '{}' up: {}", name, std::strerror(error));
  return "";
}

std::string WhyNoGroup(const std::string& name) {
  std::vector<char> buffer(kEntryBytes);
  ::group entry{};
  ::group* found = nullptr;
  const int error = getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return "";
  if (error == 0) return "there is no such group";
  LogWarning("cannot look group '{}' up: {}", name, std::strerror(error));
  return "";
}

void MakeDirectoryFor(const JobUser& user, const std::string& path) {
  std::optional<Error> denied;
  try {
    const ActAs as_user(user);
    CreateDirectories(path);
    return;
  } catch (const Error& error) {
    denied = error;
  }
  // Safe: a user who cannot write to the parent cannot place links there.
  if (geteuid() != 0 || user.uid == 0) throw *denied;
  MakeAndChown(user, path);
}

}  // namespace renzan::cluster::local
