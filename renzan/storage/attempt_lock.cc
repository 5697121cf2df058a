#include "renzan/storage/attempt_lock.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan {
namespace {

constexpr uint64_t kMaxRequestBytes = 4096;

// How an attempt is named at the end of a lock's owner text, and in a request to give way.
std::string Name(const JobAttempt& self) {
  return fmt::format("attempt {} of job {}", self.attempt, self.job);
}

// The attempt of `job` that a text ends with; -1 if there is none.
int AttemptIn(std::string_view text, const std::string& job) {
  const std::string end = " of job " + job;
  if (!text.ends_with(end)) return -1;
  text.remove_suffix(end.size());
  const size_t begin = text.rfind("attempt ");
  if (begin == text.npos) return -1;
  text.remove_prefix(begin + std::string_view("attempt ").size());
  int attempt = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), attempt);
  return error == std::errc() && rest == text.data() + text.size() ? attempt : -1;
}

std::string RequestPath(const std::string& dir) { return dir + "/.attempt"; }

// Sends SIGTERM to this process once a later attempt wants the lock.
class LockThatGivesWay : public DirectoryLock {
 public:
  LockThatGivesWay(std::unique_ptr<DirectoryLock> lock, const std::string& dir,
                   const JobAttempt& self, double poll_seconds)
      : lock_(std::move(lock)), watcher_([=](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any stopped;
          std::unique_lock held(mutex);
          while (!stopped.wait_for(held, stop, std::chrono::duration<double>(poll_seconds), [] {
            return false;
          }) && !stop.stop_requested()) {
            if (!IsWanted(dir, self)) continue;
            LogWarning("a later attempt of this job waits to write to {}: this one stops", dir);
            ::kill(::getpid(), SIGTERM);
            return;
          }
        }) {}
  void Check() override { lock_->Check(); }

 private:
  static bool IsWanted(const std::string& dir, const JobAttempt& self) {
    try {
      Storage& storage = Storage::Of(dir);
      return !storage.IsMissing(RequestPath(dir)) &&
             AttemptIn(storage.ReadText(RequestPath(dir), kMaxRequestBytes), self.job) >
                 self.attempt;
    } catch (const Error&) {
      return false;  // its storage does not answer at the moment
    }
  }

  std::unique_ptr<DirectoryLock> lock_;
  std::jthread watcher_;  // last, so that it ends first
};

}  // namespace

JobAttempt JobAttempt::FromEnvironment() {
  const char* job = std::getenv("RENZAN_JOB_ID");
  const char* attempt = std::getenv("RENZAN_ATTEMPT");
  return {.job = job == nullptr ? "" : job, .attempt = attempt == nullptr ? 0 : std::atoi(attempt)};
}

std::unique_ptr<DirectoryLock> LockForAttempt(const std::string& dir, const std::string& owner,
                                              const JobAttempt& self, std::function<bool()> stopped,
                                              const AttemptLockTimes& times) {
  Storage& storage = Storage::Of(dir);
  if (self.job.empty()) return storage.Lock(dir, owner);
  Patience patience;
  const int last = self.attempt == 0 ? -1 : AttemptIn(storage.LockOwner(dir), self.job);
  const bool is_later = last >= 0 && last < self.attempt;
  if (is_later) {
    patience = {.seconds = times.patience_seconds, .ends = std::move(stopped)};
    try {
      storage.WriteText(RequestPath(dir), Name(self));
    } catch (const Error& error) {
      // Usually nobody is left to read the request; an attempt that is may end by itself.
      LogWarning("cannot ask an earlier attempt of this job to stop: {}", error.what());
    }
  }
  std::unique_ptr<DirectoryLock> lock;
  try {
    lock = storage.Lock(dir, fmt::format("{}, {}", owner, Name(self)), patience);
  } catch (const Error& error) {
    if (!is_later || error.code() != ErrorCode::kCantCreate) throw;
    if (patience.ends && patience.ends())
      Fail(ErrorCode::kTempFail, "stopped while waiting for an earlier attempt of this job");
    Fail(ErrorCode::kTempFail,
         "an earlier attempt of this job is still running, though it was asked to stop: {}",
         error.what());
  }
  return std::make_unique<LockThatGivesWay>(
      std::move(lock), dir, self, IsInStore(dir) ? times.poll_store_seconds : times.poll_seconds);
}

}  // namespace renzan
