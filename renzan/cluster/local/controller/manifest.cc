#include "renzan/cluster/local/controller/manifest.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/host.h"
#include "renzan/base/sha256.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {
namespace {

using Json = nlohmann::ordered_json;

// Hashing larger programs would take too long while the user waits.
constexpr off_t kLargestProgram = off_t{1} << 30;
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// During its lifetime this thread (and no other) accesses files with the caller's permissions, so
// that a root daemon reveals nothing about files that the caller cannot see.
class RightsOf {
 public:
  explicit RightsOf(const Caller& caller) : acts_(::geteuid() == 0 && caller.uid != 0) {
    if (!acts_) return;
    const JobUser user = LookUpUser(caller.uid, caller.gid);
    groups_.resize(static_cast<size_t>(::getgroups(0, nullptr)));
    // The system call: setgroups() would change all threads.
    if (::getgroups(static_cast<int>(groups_.size()), groups_.data()) < 0 ||
        ::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0)
      FailErrno(errno, "cannot switch to the groups of user " + user.name);
    ::setfsgid(user.gid);
    ::setfsuid(user.uid);
  }
  ~RightsOf() {
    if (!acts_) return;
    ::setfsuid(::geteuid());
    ::setfsgid(::getegid());
    CHECK(::syscall(SYS_setgroups, groups_.size(), groups_.data()) == 0);
  }
  RightsOf(const RightsOf&) = delete;
  RightsOf& operator=(const RightsOf&) = delete;

 private:
  bool acts_;
  std::vector<gid_t> groups_;
};

std::string FindProgram(const spec::JobSpec& spec,
                        const std::map<std::string, std::string>& exported) {
  const std::string& name = spec.command.front();
  if (name.find('/') != std::string::npos)
    return name.front() == '/' ? name : spec.working_directory + "/" + name;
  std::string path = kDefaultPath;
  for (const auto* variables : {&exported, &spec.environment})
    if (const auto given = variables->find("PATH"); given != variables->end()) path = given->second;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string candidate = path.substr(begin, end - begin) + "/" + name;
    if (::faccessat(AT_FDCWD, candidate.c_str(), X_OK, AT_EACCESS) == 0) return candidate;
    begin = end + 1;
  }
  return "";
}

std::optional<std::string> HashOf(int fd) {
  Sha256 hash;
  std::vector<char> block(1 << 20);
  ssize_t got;
  while ((got = ::read(fd, block.data(), block.size())) > 0) hash.Update(block.data(), got);
  if (got < 0) return std::nullopt;
  return hash.HexDigest();
}

// A file is hashed again only after it has changed.
std::optional<std::string> CachedHashOf(int fd, const struct stat& about) {
  using Key = std::tuple<dev_t, ino_t, off_t, int64_t, int64_t, int64_t, int64_t>;
  static std::mutex mutex;
  static std::map<Key, std::string> known;
  const Key key{about.st_dev,         about.st_ino,          about.st_size,
                about.st_mtim.tv_sec, about.st_mtim.tv_nsec, about.st_ctim.tv_sec,
                about.st_ctim.tv_nsec};
  {
    std::lock_guard lock(mutex);
    if (const auto at = known.find(key); at != known.end()) return at->second;
  }
  const auto hash = HashOf(fd);
  std::lock_guard lock(mutex);
  if (known.size() > 1000) known.clear();
  if (hash) known[key] = *hash;
  return hash;
}

// Opens regular files only: opening a device can have effects.
int OpenRegular(const std::string& path, struct stat& about) {
  const int place = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return -1;
  int fd = -1;
  if (::fstat(place, &about) == 0 && S_ISREG(about.st_mode))
    fd = ::open(fmt::format("/proc/self/fd/{}", place).c_str(), O_RDONLY | O_CLOEXEC);
  ::close(place);
  return fd;
}

std::optional<std::string> ProgramHash(const std::string& path) {
  struct stat about;
  const int fd = OpenRegular(path, about);
  if (fd < 0) return std::nullopt;
  std::optional<std::string> hash;
  if (about.st_size <= kLargestProgram) hash = CachedHashOf(fd, about);
  ::close(fd);
  return hash;
}

}  // namespace

std::string MakeManifest(const spec::JobSpec& spec, const std::string& submit_dir,
                         const Caller& caller, const std::map<std::string, std::string>& exported) {
  const RightsOf rights(caller);
  const std::string program = FindProgram(spec, exported);
  const auto hash = program.empty() ? std::nullopt : ProgramHash(program);
  Json manifest = {{"command", spec.command},   {"program", nullptr},
                   {"sha256", nullptr},         {"submit_dir", submit_dir},
                   {"user", caller.name},       {"machine", HostName()},
                   {"version", RENZAN_VERSION}, {"spec", spec::PrintJobSpec(spec)},
                   {"exported", Json::array()}};
  // Only names: values may be secrets.
  for (const auto& [name, value] : exported) manifest["exported"].push_back(name);
  if (!program.empty()) manifest["program"] = program;
  if (hash) manifest["sha256"] = *hash;
  return manifest.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace renzan::cluster::local
