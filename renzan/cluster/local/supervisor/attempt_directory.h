#pragma once

// The supervisor's hold on its attempt's directory (attempt.h). The job may run as the user who
// owns it, and remove it; without it, the daemon could neither stop the job nor learn how it ended,
// and would run it again. So the supervisor puts back what was removed. Not thread-safe.

#include <memory>

#include "renzan/base/file/file_lock.h"
#include "renzan/base/process/descriptor.h"
#include "renzan/cluster/local/supervisor/attempt_files.h"
#include "renzan/cluster/local/supervisor/request_box.h"

namespace renzan::cluster::local {

// The job's user may list the directory and read the logs, but not create files. Throws Error
// kOsError.
void GrantAccess(const AttemptPaths& paths, const AttemptPlan& plan);

// Room on the disk, so that the job can be stopped, and its end recorded, when it has filled the
// disk. Throws Error kIo if it is full already.
void MakeSpares(const AttemptPaths& paths, const AttemptPlan& plan);
void RemoveSpares(const AttemptPaths& paths);

class AttemptDirectory {
 public:
  // Both must outlive it. `lock`: of paths.lock.
  AttemptDirectory(const AttemptPaths& paths, const AttemptPlan& plan,
                   std::unique_ptr<FileLock> lock);

  // Readable when something in it was removed. -1: the kernel has no more watches.
  int fd() const { return watch_.get(); }
  // Empties that; false if it was empty.
  bool TakeRemovals();
  RequestInbox& inbox() { return *inbox_; }

  // Puts back what was removed, except started.json, end.json and logs. False: nothing was. Throws
  // an Error if it cannot. Call it once the job has finished removing: its `rm` would fail.
  bool RestoreIfRemoved();

 private:
  bool IsWhole() const;
  void Watch();

  const AttemptPaths& paths_;
  const AttemptPlan& plan_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<RequestInbox> inbox_;
  Descriptor watch_;
};

}  // namespace renzan::cluster::local
