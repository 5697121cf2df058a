#include "renzan/cli/jobs/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"

namespace renzan {
namespace {

using cluster::Backend;
using Json = cluster::Document;

constexpr double kMaxDaemonAbsenceSeconds = 60;
// Thousands may wait for jobs that run for days: the pause between two questions grows with the
// time that they have waited, so the end of a job is noticed late by little of its run time.
constexpr double kFirstPause = 0.02, kUsualPause = 1, kPauseOfWaited = 0.02, kLongestPause = 10;

// What the daemon adds to the message of a job whose artifacts it could not keep
// (artifact_collector.cc), and what separates that from the rest.
constexpr std::string_view kNotAll = "; not all of its ", kSeparator = "; ";

bool HasEnded(const std::string& state) {
  return state == "done" || state == "failed" || state == "cancelled" || state == "timeout";
}

// `followed`: whether its output has been shown.
int ExitCodeOf(const std::string& id, const Json& job, const std::string& state, bool followed) {
  const Json& code = job.at("exit_code");
  const std::string why = job.value("message", "");
  if (state == "done") {
    // What could not be collected or uploaded.
    if (const size_t at = why.find(kNotAll); at != why.npos)
      LogWarning("job {} is done, but {}", id, why.substr(at + kSeparator.size()));
    return 0;
  }
  LogWarning("job {} ended: {}{}{}{}", id, state,
             code.is_null() ? "" : fmt::format(", exit status {}", code.get<int>()),
             why.empty() ? "" : fmt::format(" ({})", why),
             followed || job.at("attempts") == 0
                 ? ""
                 : fmt::format("; for its output: renzan job logs {}", id));
  const int status = code.is_null() ? 1 : code.get<int>();
  // 75 says "run me again", but the job has ended for good: by its timeout, say.
  return status == 0 || status == static_cast<int>(ErrorCode::kTempFail) ? 1 : status;
}

// Asks less often, and not when others do who have waited for as long.
class Pauses {
 public:
  void Restart() { pause_ = kFirstPause; }
  void Sleep() {
    const double waited = SystemClock().MonotonicSeconds() - began_;
    const double longest = std::clamp(kPauseOfWaited * waited, kUsualPause, kLongestPause);
    const double jittered = pause_ * std::uniform_real_distribution(0.5, 1.0)(random_);
    std::this_thread::sleep_for(std::chrono::duration<double>(jittered));
    pause_ = std::min(pause_ * 1.5, longest);
  }

 private:
  const double began_ = SystemClock().MonotonicSeconds();
  double pause_ = kFirstPause;
  std::minstd_rand random_{std::random_device()()};
};

// How much output has been shown.
struct Shown {
  int64_t attempt = 0;
  size_t bytes = 0;  // of that attempt
  double when = 0;   // the last of them
};

// Prints the rest of an attempt's log until the attempt or the daemon ends.
void ShowAttempt(Backend& backend, const std::string& id, Shown& shown) {
  size_t begin = 0;  // offset of the piece in the log
  backend.ReadLog(id, {.attempt = shown.attempt, .follow = true}, [&](std::string_view piece) {
    const size_t skip = std::min(piece.size(), shown.bytes - std::min(shown.bytes, begin));
    begin += piece.size();
    piece.remove_prefix(skip);
    if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size() ||
        std::fflush(stdout) != 0)
      FailErrno(errno, "cannot write the log to stdout");
    shown.bytes += piece.size();
    if (!piece.empty()) shown.when = SystemClock().MonotonicSeconds();
  });
}

}  // namespace

int WaitForJob(Backend& backend, const std::string& id, bool follow) {
  Shown shown;
  Pauses pauses;
  double last_answer = SystemClock().MonotonicSeconds();
  bool log_fails = false;  // then the job's state alone is no answer
  for (;;) {
    try {
      const Json job = follow ? backend.ShowJob(id) : backend.StateOfJob(id);
      if (!log_fails) last_answer = SystemClock().MonotonicSeconds();
      const std::string state = job.at("state");
      const int64_t attempts = job.at("attempts");
      if (follow && attempts > shown.attempt) {
        // Checked before, because only a log read after the attempt's end is surely complete.
        const bool is_over = job.at("attempts_list").at(shown.attempt).at("state") == "ended";
        log_fails = true;
        try {
          ShowAttempt(backend, id, shown);
        } catch (const Error& error) {
          // On Kubernetes the output goes with its pods.
          if (error.code() != ErrorCode::kNoInput || !is_over) throw;
          LogWarning("{}", error.what());
        }
        log_fails = false;
        if (is_over) shown = {.attempt = shown.attempt + 1};
        pauses.Restart();
        continue;
      }
      if (HasEnded(state)) return ExitCodeOf(id, job, state, follow);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      last_answer = std::max(last_answer, shown.when);
      if (SystemClock().MonotonicSeconds() - last_answer > kMaxDaemonAbsenceSeconds)
        throw error.WithContext(fmt::format("job {} continues; no longer waiting for it", id));
    }
    pauses.Sleep();
  }
}

}  // namespace renzan
