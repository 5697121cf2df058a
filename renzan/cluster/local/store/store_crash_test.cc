// Killed writers and full disks.

#include <fcntl.h>
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
#include "renzan/cluster/local/store/sqlite.h"
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
        store.Transact([&] { store.Put(SampleJob(id), EventRecord{.kind = "submitted"}); });
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

// Mounts a small file system, in a mount namespace that ends with this process. Exits with 100 if
// that is not possible.
void MountSmallDisk(const std::string& directory, const char* size) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", directory.c_str(), "tmpfs", 0, size) != 0)
    ::_exit(100);
}

// Runs `child`, which exits with 0 if all is well, in a process of its own.
void ExpectWell(void child(const std::string& directory)) {
  TemporaryDirectory directory;
  const pid_t pid = ::fork();
  if (pid == 0) child(directory.path());
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "needs permission to mount a file system";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

void FillADisk(const std::string& directory) {
  MountSmallDisk(directory, "size=512k");
  JobId id = 0;
  int wrong = 0;
  {
    Store store(directory + "/state.db");
    try {
      for (;; ++id) store.Transact([&] { store.Put(SampleJob(id + 1)); });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo) wrong = 1;
    }
    if (id == 0 || store.LastJob() != id || !store.FindJob(id)) wrong = 2;
  }
  Store store(directory + "/state.db");
  ::_exit(store.LastJob() == id ? wrong : 3);
}

TEST(StoreCrash, AFullDiskLosesNothing) { ExpectWell(FillADisk); }

// Until nothing is left.
void Fill(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string block(4096, 'x');
  while (::write(fd, block.data(), block.size()) > 0) {
  }
  ::close(fd);
}

bool CanWrite(Store& store, int transactions) {
  static JobId id = 0;
  try {
    for (; transactions > 0; --transactions) {
      ++id;
      store.Transact([&] {
        store.Put(SampleJob(id), EventRecord{.kind = "submitted", .text = std::string(200, 'x')});
      });
    }
  } catch (const Error&) {
    --id;
    return false;
  }
  return store.LastJob() == id && store.FindJob(id);
}

void UseReservedRoom(const std::string& directory) {
  MountSmallDisk(directory, "size=24m");
  const std::string path = directory + "/state.db", filler = directory + "/filler";
  {
    Store store(path);
    store.ReserveRoom();
    Fill(filler);
    if (!CanWrite(store, 500)) ::_exit(1);
  }
  Fill(filler);  // what closing it has freed
  {
    Store store(path);
    Fill(filler);
    if (!CanWrite(store, 100)) ::_exit(2);
    // It says so when there is no more.
    while (CanWrite(store, 1)) {
    }
    try {
      store.ReserveRoom();
      ::_exit(3);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo) ::_exit(4);
    }
  }
  ::unlink(filler.c_str());
  Store store(path);
  store.ReserveRoom();
  Fill(filler);
  ::_exit(CanWrite(store, 500) ? 0 : 5);
}

TEST(StoreCrash, ReservedRoomLastsForAWhileOnAFullDisk) { ExpectWell(UseReservedRoom); }

// A writer may be killed while it makes room.
TEST(StoreCrash, TheTableThatMakesRoomMayBeThere) {
  TemporaryDirectory directory;
  const std::string path = directory / "state.db";
  { Store store(path); }
  { Database(path).Run("CREATE TABLE reserved_room (zeros BLOB)"); }
  Store store(path);
  store.ReserveRoom();
  EXPECT_TRUE(CopiesIn(directory).empty());
}

}  // namespace
}  // namespace renzan::cluster::local
