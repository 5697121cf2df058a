#include "renzan/base/file/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_system.h"

namespace renzan {
namespace {

// A started program closes the descriptors it does not inherit a moment after fork() returns.
constexpr double kSecondsForExec = 2;

// A process that tries to take the lock at `path` and then runs, with or without it, until killed.
class Holder {
 public:
  Holder(const std::string& path, const std::string& owner) {
    int ready[2];
    CHECK(::pipe(ready) == 0);
    pid_ = ::fork();
    CHECK(pid_ >= 0);
    if (pid_ == 0) {
      const auto lock = FileLock::TryLock(path, owner);
      const char answer = lock != nullptr ? 'y' : 'n';
      if (::write(ready[1], &answer, 1) != 1) _exit(1);
      for (;;) ::pause();
    }
    CHECK(::read(ready[0], &answer_, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Holder() { Kill(); }

  bool has_lock() const { return answer_ == 'y'; }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  char answer_ = '?';
};

TEST(FileLock, AnotherProcessGetsItWhenTheOwnerDies) {
  TemporaryDirectory dir;
  Holder holder(dir / "lock", "worker 0 on host\n7");
  ASSERT_TRUE(holder.has_lock());
  EXPECT_EQ(FileLock::TryLock(dir / "lock", "me"), nullptr);
  EXPECT_EQ(FileLock::OwnerOf(dir / "lock"), "worker 0 on host 7");
  holder.Kill();
  {
    const auto lock = FileLock::TryLock(dir / "lock", "me");
    ASSERT_NE(lock, nullptr);
    EXPECT_EQ(ReadFile(dir / "lock"), "me\n");
    EXPECT_FALSE(Holder(dir / "lock", "other").has_lock());
    EXPECT_EQ(FileLock::TryLock(dir / "lock", "again"), nullptr);
    EXPECT_EQ(FileLock::OwnerOf(dir / "lock"), "me");
  }
  EXPECT_TRUE(Holder(dir / "lock", "other").has_lock());
}

TEST(FileLock, StartedProgramsDoNotKeepIt) {
  TemporaryDirectory dir;
  auto lock = FileLock::TryLock(dir / "lock", "me");
  FILE* const program = ::popen("read line", "w");  // runs until the pipe is closed
  ASSERT_NE(program, nullptr);
  lock.reset();
  EXPECT_NE(FileLock::WaitForLock(dir / "lock", "next", kSecondsForExec), nullptr);
  ::pclose(program);
}

TEST(FileLock, TheHolderCanBeSeenWithoutTakingIt) {
  TemporaryDirectory dir;
  EXPECT_FALSE(FileLock::IsHeld(dir / "lock"));
  EXPECT_FALSE(FileExists(dir / "lock"));
  {
    const auto lock = FileLock::TryLock(dir / "lock", "me");
    EXPECT_TRUE(FileLock::IsHeld(dir / "lock"));
    EXPECT_EQ(FileLock::OwnerOf(dir / "lock"), "me");
  }
  EXPECT_FALSE(FileLock::IsHeld(dir / "lock"));
}

TEST(FileLock, AProgramThatInheritedItKeepsIt) {
  TemporaryDirectory dir;
  auto lock = FileLock::TryLock(dir / "lock", "starter");
  EXPECT_EQ(FileLock::Inherit(lock->descriptor(), dir / "other", "me"), nullptr);
  // As after exec with the descriptor.
  auto inherited = FileLock::Inherit(::dup(lock->descriptor()), dir / "lock", "program");
  ASSERT_NE(inherited, nullptr);
  lock.reset();
  EXPECT_EQ(FileLock::OwnerOf(dir / "lock"), "program");
  EXPECT_EQ(FileLock::TryLock(dir / "lock", "next"), nullptr);
  FILE* const program = ::popen("read line", "w");  // does not inherit it further
  ASSERT_NE(program, nullptr);
  inherited.reset();
  EXPECT_NE(FileLock::WaitForLock(dir / "lock", "next", kSecondsForExec), nullptr);
  ::pclose(program);
}

TEST(FileLock, ErrorsNameTheFile) {
  try {
    FileLock::TryLock("/no/such/lock", "me");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
    EXPECT_NE(std::string(error.what()).find("/no/such/lock"), std::string::npos);
  }
  EXPECT_EQ(FileLock::OwnerOf("/no/such/lock"), "");
}

class NoLockSupport : public FileSystem {
 public:
  explicit NoLockSupport(int error) : error_(error) {}
  int TryLock(int) override {
    errno = error_;
    return -1;
  }

 private:
  int error_;
};

TEST(FileLock, WithoutLockSupportItWarnsAndContinues) {
  TemporaryDirectory dir;
  for (const int error : {ENOLCK, ENOTSUP, EOPNOTSUPP, ENOSYS}) {
    NoLockSupport none(error);
    const ScopedFileSystem scope(none);
    testing::internal::CaptureStderr();
    EXPECT_NE(FileLock::TryLock(dir / "lock", "me"), nullptr);
    EXPECT_NE(testing::internal::GetCapturedStderr().find(dir / "lock"), std::string::npos);
  }
  NoLockSupport broken(EIO);
  const ScopedFileSystem scope(broken);
  EXPECT_THROW(FileLock::TryLock(dir / "lock", "me"), Error);
}

}  // namespace
}  // namespace renzan
