#pragma once

// For tests: an agent whose attempts run until the test ends them.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/core/snapshot.h"
#include "renzan/cluster/local/agent.h"

namespace renzan::cluster::local {

class FakeAgent : public Agent {
 public:
  struct Run {
    AttemptPlan plan;
    AttemptReport report;
    std::vector<double> stops;
    int checkpoints = 0, clean_ups = 0;
    std::vector<std::string> failed_nodes;
    std::vector<TimeMs> time_limits;
  };

  pid_t Start(const std::string& directory, const AttemptPlan& plan) override {
    if (on_start) on_start();
    if (fail_starts) Fail(ErrorCode::kOsError, "out of processes");
    Run& run = runs[directory];
    run.plan = plan;
    run.report = {.phase = AttemptPhase::kRunning, .supervisor = next_pid_++};
    return run.report.supervisor;
  }
  AttemptReport Report(const std::string& directory) override {
    if (unreadable == directory) Fail(ErrorCode::kIo, "cannot read {}", directory);
    return runs.count(directory) ? runs[directory].report : AttemptReport{};
  }
  void Stop(const std::string& directory, double grace) override {
    if (fail_requests) Fail(ErrorCode::kIo, "no room for a request");
    runs[directory].stops.push_back(grace);
  }
  void Checkpoint(const std::string& directory) override { ++runs[directory].checkpoints; }
  void SetTimeLimit(const std::string& directory, int64_t timeout_ms) override {
    if (fail_requests) Fail(ErrorCode::kIo, "no room for a request");
    runs[directory].time_limits.push_back(timeout_ms);
  }
  void NodeFailed(const std::string& directory, const std::string& node) override {
    if (fail_requests) Fail(ErrorCode::kIo, "no room for a request");
    runs[directory].failed_nodes.push_back(node);
  }
  std::optional<Started> Find(const std::string& directory) override {
    if (no_plans || !runs.contains(directory)) return std::nullopt;
    return Started{.plan = runs[directory].plan, .at = {}};
  }
  int CleanUp(const std::string& directory) override { return runs[directory].clean_ups++; }
  pid_t StartCopying(const std::string& from, const std::string& to, uid_t, gid_t,
                     const std::string&) override {
    copies.emplace_back(from, to);
    return next_pid_++;
  }
  pid_t StartUploading(const Upload& upload) override {
    uploads.push_back(upload);
    return next_pid_++;
  }
  pid_t StartChecking(const std::vector<std::string>&,
                      const std::map<std::string, std::string>& environment,
                      const std::string& log) override {
    if (!check_output.empty()) WriteFileAtomically(log, check_output);
    checks[next_pid_] = environment.at("RENZAN_NODE");
    return next_pid_++;
  }
  void StopChecking(pid_t child) override { stopped_checks.push_back(child); }
  void StopCopying(pid_t) override {
    if (!unkillable) copy_status = -1;
  }
  pid_t StartRemoving(const std::vector<std::string>& directories) override {
    for (const std::string& directory : directories)
      if (directory != irremovable) std::filesystem::remove_all(directory);
    removed.push_back(directories);
    return next_pid_++;
  }
  std::optional<int> Reap(pid_t child) override {
    const auto check = checks.find(child);
    if (check == checks.end()) return copy_status;
    const auto status = check_status.find(check->second);
    if (status == check_status.end()) return std::nullopt;
    checks.erase(check);
    return status->second;
  }

  void End(const std::string& directory, EndedBy by, int code, TimeMs started, TimeMs ended) {
    runs[directory].report = {
        .phase = AttemptPhase::kEnded,
        .end = AttemptEnd{.by = by,
                          .exit_code = code,
                          .message = fmt::format("worker 0 ended with {}", code),
                          .started_ms = started,
                          .ended_ms = ended,
                          .ran_ms = ended - started}};
  }

  std::map<std::string, Run> runs;  // by directory
  std::vector<std::pair<std::string, std::string>> copies;
  std::vector<Upload> uploads;
  std::optional<int> copy_status;
  std::map<pid_t, std::string> checks;      // that run, by node
  std::map<std::string, int> check_status;  // with which checks of a node end; none: they run on
  std::string check_output;
  std::vector<pid_t> stopped_checks;
  bool fail_starts = false, fail_requests = false;
  bool no_plans = false;                // they are damaged
  bool unkillable = false;              // children that copy hang in the file system
  std::string unreadable, irremovable;  // a directory
  std::vector<std::vector<std::string>> removed;
  std::function<void()> on_start;

 private:
  pid_t next_pid_ = 1'000'000'000;  // larger than any real one
};

}  // namespace renzan::cluster::local
