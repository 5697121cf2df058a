#include "renzan/cluster/local/supervisor/memory_use.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstring>
#include <vector>

#include "renzan/base/file/file.h"
#include "renzan/base/process/process_table.h"

namespace renzan::cluster::local {
namespace {

// More than a test program uses by itself, even with a sanitizer.
constexpr int64_t kBlockKib = 256 << 10;
constexpr size_t kBlockBytes = size_t{kBlockKib} << 10;

// A process and its child that share a block of memory.
class Family {
 public:
  // `kind` is MAP_PRIVATE or MAP_SHARED. Hidden processes cannot be inspected without privileges.
  explicit Family(int kind, bool hidden = false) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t parent = fork();
    if (parent == 0) RunParent(kind, hidden, ends[1]);
    pid_t child = 0;
    EXPECT_EQ(read(ends[0], &child, sizeof(child)), ssize_t{sizeof(child)});
    close(ends[0]);
    close(ends[1]);
    processes_ = {parent, child};
  }
  ~Family() {
    kill(processes_[0], SIGKILL);
    waitpid(processes_[0], nullptr, 0);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  const std::vector<pid_t>& processes() const { return processes_; }

 private:
  // Does not return.
  static void RunParent(int kind, bool hidden, int ready) {
    void* const block =
        mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) _exit(1);
    std::memset(block, 1, kBlockBytes);
    if (hidden) prctl(PR_SET_DUMPABLE, 0);
    const pid_t child = fork();
    if (child < 0) _exit(1);
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      // MAP_SHARED memory is mapped only in processes that touch it.
      volatile const char* const bytes = static_cast<const char*>(block);
      for (size_t i = 0; i < kBlockBytes; i += 4096) static_cast<void>(bytes[i]);
      const pid_t self = getpid();
      if (write(ready, &self, sizeof(self)) < 0) _exit(1);
    }
    for (;;) pause();
  }

  std::vector<pid_t> processes_;
};

TEST(MemoryUse, CountsSharedMemoryOnce) {
  for (const int kind : {MAP_PRIVATE, MAP_SHARED}) {
    const Family family(kind);
    EXPECT_GE(MaxMemoryKib(family.processes()), 2 * kBlockKib);
    EXPECT_GE(MemoryKib(family.processes()), kBlockKib);
    EXPECT_LT(MemoryKib(family.processes()), kBlockKib * 3 / 2);
    // Half of it counts for the other process.
    EXPECT_LT(MemoryKib({family.processes()[0]}), kBlockKib * 3 / 4);
  }
}

TEST(MemoryUse, DoesNotCountMappedFiles) {
  const TemporaryDirectory dir;
  const int file = open((dir / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  struct statfs about {};
  ASSERT_EQ(fstatfs(file, &about), 0);
  if (about.f_type == TMPFS_MAGIC) GTEST_SKIP() << "files are in memory on this machine";
  ASSERT_EQ(ftruncate(file, kBlockBytes), 0);
  void* const block = mmap(nullptr, kBlockBytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
  ASSERT_NE(block, MAP_FAILED);
  close(file);
  const std::string status = ProcessFile(getpid(), "status");
  EXPECT_GE(std::stoll(std::string(StatusField(status, "RssFile"))), kBlockKib) << "it is resident";
  EXPECT_LT(MaxMemoryKib({getpid()}), kBlockKib);
  EXPECT_LT(MemoryKib({getpid()}), kBlockKib);
  munmap(block, kBlockBytes);
}

TEST(MemoryUse, EndedProcessesUseNone) {
  const pid_t zombie = fork();
  if (zombie == 0) _exit(0);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(zombie), &info, WEXITED | WNOWAIT), 0);
  const std::vector<pid_t> gone = {INT_MAX, zombie};
  EXPECT_EQ(MaxMemoryKib(gone), 0);
  EXPECT_EQ(MemoryKib(gone), 0);
  waitpid(zombie, nullptr, 0);
}

TEST(MemoryUse, CountsTheLargestOfHiddenProcesses) {
  const Family family(MAP_PRIVATE, true);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t observer = fork();
  if (observer == 0) {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setuid(kNobody) != 0) _exit(1);
    const bool hidden = ProcessFile(family.processes()[0], "smaps_rollup").empty();
    const int64_t kib = hidden ? MemoryKib(family.processes()) : -1;
    _exit(write(ends[1], &kib, sizeof(kib)) == sizeof(kib) ? 0 : 1);
  }
  int64_t kib = 0;
  ASSERT_EQ(read(ends[0], &kib, sizeof(kib)), ssize_t{sizeof(kib)});
  waitpid(observer, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  EXPECT_GE(kib, kBlockKib);
  EXPECT_LT(kib, kBlockKib * 3 / 2);
}

}  // namespace
}  // namespace renzan::cluster::local
