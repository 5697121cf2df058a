// Killed writers and full disks.

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/cluster/local/store/store_testing.h"

namespace renzan::cluster::local {
namespace {

// The writer is killed after a delay drawn from the seed. It reports the last acknowledged job
// through shared memory.
TEST(StoreCrash, KeepsAcknowledgedChangesWhenTheWriterIsKilled) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  { Store store(path); }
  auto* acknowledged = static_cast<volatile int64_t*>(
      ::mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(acknowledged, MAP_FAILED);
  *acknowledged = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const pid_t writer = ::fork();
    if (writer == 0) {
      Store store(path);
      for (JobId id = store.LastJob() + 1;; ++id) {
        store.Transact([&] {
          store.Put(SampleJob(id));
          store.Put(SampleAttempt(id));
          store.AddEvent({.job = id, .kind = "submitted"});
        });
        *acknowledged = id;
      }
    }
    ASSERT_GT(writer, 0);
    const auto microseconds = 5000 + Philox::Draw(PhiloxKey(3, "kill"), seed)[0] % 40000;
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    const int64_t expected = *acknowledged;
    Store store(path);
    const JobId last = store.LastJob();
    EXPECT_GE(last, expected);
    EXPECT_LE(last, expected + 1);
    for (JobId id = 1; id <= last; ++id) {
      ASSERT_TRUE(store.FindJob(id));
      ASSERT_EQ(store.Attempts(id).size(), 1u);
      ASSERT_EQ(store.Events(id).size(), 1u);
    }
    *acknowledged = last;
  }
  EXPECT_GT(*acknowledged, 0);
  ::munmap(const_cast<int64_t*>(acknowledged), sizeof(int64_t));
}

// Fills a small file system. Exits with 0 if all is well, 100 if it cannot be mounted.
[[noreturn]] void FillADisk(const std::string& directory) {
  // In a mount namespace that ends with this process.
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=512k") != 0)
    ::_exit(100);
  JobId id = 0;
  int wrong = 0;
  {
    Store store(directory + "/state.db");
    try {
      for (;; ++id)
        store.Transact([&] {
          store.Put(SampleJob(id + 1));
          store.Put(SampleAttempt(id + 1));
        });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo) wrong = 1;
    }
    if (id == 0 || store.LastJob() != id || !store.FindJob(id)) wrong = 2;
  }
  Store store(directory + "/state.db");
  ::_exit(store.LastJob() == id ? wrong : 3);
}

TEST(StoreCrash, AFullDiskLosesNothing) {
  TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) FillADisk(directory.path());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "needs permission to mount a file system";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace renzan::cluster::local
