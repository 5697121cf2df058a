#include "renzan/launch/elastic.h"

#include <algorithm>
#include <chrono>
#include <csignal>

#include "renzan/base/backoff.h"
#include "renzan/base/counted.h"
#include "renzan/base/log.h"

namespace renzan {
namespace {

using std::chrono::steady_clock;

constexpr double kLongestBackoffSeconds = 60;

// Waits for SIGINT, SIGTERM or SIGHUP; 0 after `seconds`.
int WaitForStop(const SignalQueue& signals, double seconds) {
  const auto end = steady_clock::now() + std::chrono::duration<double>(seconds);
  do {
    const std::chrono::duration<double> left = end - steady_clock::now();
    const int signal = signals.Next(std::max(0.0, left.count()), -1);
    if (IsStopSignal(signal)) return signal;
  } while (steady_clock::now() < end);
  return 0;
}

void ReportEnd(const ElasticOptions& options, const Attempt& last, const LaunchResult& result) {
  if (result.kind == LaunchResult::Kind::kStopped) LogInfo("{}", result.cause);
  if (result.kind != LaunchResult::Kind::kFailure) return;
  if (options.max_restarts > 0 && MayBeFixedByRestart(result)) {
    LogError("{}; no restart is left after {}: find out why the workers fail, or raise {}",
             result.cause, Counted(options.max_restarts, "restart"), options.max_restarts_name);
  } else {
    LogError("{}{}", result.cause,
             last.workers > 1 && !result.ends.empty() ? "; the other workers were stopped" : "");
  }
}

}  // namespace

bool MayBeFixedByRestart(const LaunchResult& result) {
  return result.kind == LaunchResult::Kind::kFailure && result.transient && !result.stop_requested;
}

double GrowAfter(const ElasticOptions& options, int asked_workers, const Attempt& attempt) {
  if (attempt.workers >= asked_workers || attempt.restart >= options.max_restarts) return 0;
  constexpr double kLongestSeconds = 7 * 86400;
  return Backoff(options.grow_after_seconds, attempt.grown, kLongestSeconds);
}

std::optional<Attempt> NextAttempt(const ElasticOptions& options, int asked_workers,
                                   const Attempt& last, const LaunchResult& result) {
  if (result.kind == LaunchResult::Kind::kGrowing)
    return Attempt{.workers = asked_workers, .restart = last.restart, .grown = last.grown + 1};
  if (!MayBeFixedByRestart(result) || last.restart >= options.max_restarts) return std::nullopt;
  const int least =
      options.min_workers > 0 ? std::min(options.min_workers, asked_workers) : asked_workers;
  int workers = std::max(last.workers - std::max(1, result.died), least);
  if (workers < last.workers &&
      ((options.sharded && result.out_of_memory) || !options.fits(workers)))
    workers = last.workers;
  return Attempt{
      .workers = workers,
      .restart = last.restart + 1,
      .grown = last.grown,
      .wait_seconds = Backoff(options.backoff_seconds, last.restart, kLongestBackoffSeconds)};
}

ElasticResult RunElastic(const ElasticOptions& options, int workers, const SignalQueue& signals,
                         const LaunchFunction& launch) {
  for (Attempt attempt = {.workers = workers};;) {
    const LaunchResult result = launch(attempt);
    const std::optional<Attempt> next = NextAttempt(options, workers, attempt, result);
    if (!next) {
      ReportEnd(options, attempt, result);
      return {result, attempt.restart};
    }
    if (next->grown > attempt.grown) {
      LogInfo("growing from {} to {}", attempt.workers, Counted(next->workers, "worker"));
    } else {
      LogInfo("{}: restarting with {} in {:g} s (restart {} of {})", result.cause,
              Counted(next->workers, "worker"), next->wait_seconds, next->restart,
              options.max_restarts);
    }
    if (const int signal = WaitForStop(signals, next->wait_seconds); signal != 0) {
      const LaunchResult stopped = StoppedBy(signal);
      ReportEnd(options, attempt, stopped);
      return {stopped, attempt.restart};
    }
    attempt = *next;
  }
}

ElasticResult LaunchElastic(LaunchOptions options, const ElasticOptions& elastic) {
  // One queue for all attempts, so that a signal between two attempts is not lost.
  const SignalQueue signals(LaunchSignals());
  const int asked = options.workers;
  return RunElastic(elastic, asked, signals, [&](const Attempt& attempt) {
    options.grow_after_seconds = GrowAfter(elastic, asked, attempt);
    options.workers = attempt.workers;
    options.restart = attempt.restart + attempt.grown;
    return LaunchLocalWorkers(options, signals);
  });
}

}  // namespace renzan
