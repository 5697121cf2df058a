#pragma once

// The daemon's interface to the machine: supervisors that run attempts (attempt.h), and child
// processes that copy what jobs leave behind or delete directories. Tests use a fake. For one
// thread.

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/cluster/local/supervisor/attempt.h"

namespace renzan::cluster::local {

class Agent {
 public:
  virtual ~Agent() = default;

  // Like the functions of attempt.h.
  virtual pid_t Start(const std::string& directory, const AttemptPlan& plan) = 0;
  virtual AttemptReport Report(const std::string& directory) = 0;
  virtual void Stop(const std::string& directory, double grace_seconds) = 0;
  virtual void Checkpoint(const std::string& directory) = 0;
  virtual void SetTimeLimit(const std::string& directory, int64_t timeout_ms) = 0;
  virtual void NodeFailed(const std::string& directory, const std::string& node) = 0;
  virtual int CleanUp(const std::string& directory) = 0;
  // What was started there, and when, as far as its files say so.
  struct Started {
    AttemptPlan plan;
    std::optional<int64_t> at;  // Unix ms; nothing: not all of its workers were
  };
  virtual std::optional<Started> Find(const std::string& directory) = 0;

  // Starts a child that copies `from`, a file or directory, into the directory `to` with that
  // user's permissions, and is killed when the calling thread ends. What it could not copy is in
  // the file `log`. Throws Error kOsError.
  virtual pid_t StartCopying(const std::string& from, const std::string& to, uid_t uid, gid_t gid,
                             const std::string& log) = 0;
  // Starts a child that copies files to a store in the same way: what `renzan upload` does.
  struct Upload {
    std::string sources;  // a file that lists them
    std::string to;
    std::map<std::string, std::string> environment;  // in addition to the user's
    std::string log;                                 // its last line says why the upload failed
    uid_t uid = 0;
    gid_t gid = 0;
  };
  virtual pid_t StartUploading(const Upload& upload) = 0;
  virtual void StopCopying(pid_t child) = 0;
  // Starts a child, as the daemon's user, that checks a node, and is killed when the calling thread
  // ends. Its output goes to `log`. Throws Error kOsError.
  virtual pid_t StartChecking(const std::vector<std::string>& command,
                              const std::map<std::string, std::string>& environment,
                              const std::string& log) = 0;
  // Kills it and its children.
  virtual void StopChecking(pid_t child) = 0;
  // Starts a child that deletes directories recursively. It keeps running when the daemon ends.
  // Throws Error kOsError.
  virtual pid_t StartRemoving(const std::vector<std::string>& directories) = 0;
  // The exit status of such a child. Returns a value once, when the child has ended.
  virtual std::optional<int> Reap(pid_t child) = 0;
};

// The programs renzan-supervisor and renzan.
std::unique_ptr<Agent> MakeLocalAgent(const std::string& supervisor, const std::string& renzan);

}  // namespace renzan::cluster::local
