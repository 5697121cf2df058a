#include "renzan/cluster/kubernetes/api/exec_credentials.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/api/api.h"

namespace renzan::cluster::kubernetes {
namespace {

// Credentials are renewed this long before they expire, or in the last quarter of their time.
constexpr double kMarginSeconds = 60;
constexpr double kMarginShare = 0.25;
// Many connections would otherwise run a program that fails, or whose credentials are refused or
// have expired already (by a wrong clock), once for each request.
constexpr double kLeastSecondsBetweenRuns = 5;

class ExecCredentials : public Credentials {
 public:
  ExecCredentials(ExecConfig config, ExecSurroundings surroundings, const Clock& clock)
      : config_(std::move(config)), surroundings_(surroundings), clock_(clock) {}

  std::shared_ptr<const Credential> Get(const std::stop_token& stop) override {
    std::unique_lock lock(mutex_);
    for (;;) {
      const double now = clock_.UnixSeconds();
      if (current_ && now < expires_) {
        if (now >= renew_at_ && !HasJustFailed()) Start();
        return current_;
      }
      if (HasJustFailed()) throw ApiError(*failure_);
      Start();
      Wait(lock, stop);
    }
  }

  bool Renew(const std::shared_ptr<const Credential>& refused,
             const std::stop_token& stop) override {
    std::unique_lock lock(mutex_);
    if (current_ != refused) return true;
    if (!running_) {
      const double now = clock_.MonotonicSeconds();
      if (now < refused_seconds_ + kLeastSecondsBetweenRuns) return false;
      refused_seconds_ = now;
      failure_.reset();
      Start();
    }
    Wait(lock, stop);
    if (current_ == refused && failure_) throw ApiError(*failure_);
    return *current_ != *refused;
  }

 private:
  // All with the mutex held.

  bool HasJustFailed() const {
    return failure_ && clock_.MonotonicSeconds() < failed_seconds_ + kLeastSecondsBetweenRuns;
  }

  void Start() {
    if (running_) return;
    try {
      // Waits for the end of the earlier thread, which has nothing left to do.
      thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
    } catch (const std::system_error& error) {
      Fail(ErrorCode::kOsError, "{}: cannot start a thread to run it: {}", config_.where,
           error.what());
    }
    running_ = true;
  }

  void Wait(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    ++waiting_;
    const bool ended = ended_.wait(lock, stop, [this] { return !running_; });
    --waiting_;
    if (!ended)
      throw ApiError(ErrorCode::kTempFail, 0, "Stopped",
                     config_.where + ": stopped before there were credentials", false);
  }

  // In the thread.
  void Run(const std::stop_token& stop) {
    std::optional<ExecAnswer> answer;
    std::optional<ApiError> failure;
    const auto fail = [&](ErrorCode code, const char* what) {
      failure.emplace(code, 0, "NoCredentials", what, /*maybe_executed=*/false);
    };
    try {
      answer = RunExecPlugin(config_, surroundings_, clock_, stop);
    } catch (const Error& error) {
      fail(error.code(), error.what());
    } catch (const std::exception& error) {
      fail(ErrorCode::kOsError, error.what());
    }
    const std::lock_guard lock(mutex_);
    answer ? Take(*std::move(answer)) : Miss(*std::move(failure));
    running_ = false;
    ended_.notify_all();
  }

  void Take(ExecAnswer answer) {
    const double now = clock_.UnixSeconds();
    const double never = std::numeric_limits<double>::infinity();
    const double left = answer.expires ? *answer.expires - now : never;
    expires_ = now + std::max(left, kLeastSecondsBetweenRuns);
    renew_at_ = answer.expires ? expires_ - std::min(kMarginSeconds, kMarginShare * left) : never;
    failure_.reset();
    // The same object for the same credential: connections see that nothing has changed.
    if (!current_ || *current_ != answer.credential)
      current_ = std::make_shared<Credential>(std::move(answer.credential));
  }

  void Miss(ApiError failure) {
    if (waiting_ == 0 && current_ && clock_.UnixSeconds() < expires_)
      LogWarning("{} (the earlier credentials stay in use)", failure.what());
    failure_ = std::move(failure);
    failed_seconds_ = clock_.MonotonicSeconds();
  }

  const ExecConfig config_;
  const ExecSurroundings surroundings_;
  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  bool running_ = false;
  int waiting_ = 0;  // for its end
  std::shared_ptr<const Credential> current_;
  double expires_ = 0, renew_at_ = 0;  // Unix seconds, of current_
  std::optional<ApiError> failure_;    // of the last run
  double failed_seconds_ = 0;          // monotonic
  double refused_seconds_ = -1e300;    // the last run because the server refused
  std::jthread thread_;                // last: it uses the others
};

}  // namespace

std::shared_ptr<Credentials> MakeExecCredentials(ExecConfig config, ExecSurroundings surroundings,
                                                 const Clock& clock) {
  return std::make_shared<ExecCredentials>(std::move(config), surroundings, clock);
}

}  // namespace renzan::cluster::kubernetes
