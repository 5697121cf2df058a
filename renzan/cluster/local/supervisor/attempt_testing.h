#pragma once

// For tests: an attempt in a directory of its own, kept by renzan-supervisor, whose workers run
// shell scripts.

#include <sys/types.h>

#include <functional>
#include <string>

#include "renzan/base/file.h"
#include "renzan/cluster/local/supervisor/attempt.h"

namespace renzan::cluster::local {

// Looks every few milliseconds; false after a minute, which no valid machine needs.
bool Eventually(const std::function<bool()>& condition);

// Also false for one that only waits to be reaped.
bool Lives(pid_t pid);

class TestAttempt {
 public:
  // One worker on n0 that runs `script` in a shell as ourselves. Its working directory is work().
  explicit TestAttempt(const std::string& script);
  // Ends what the test has left running.
  ~TestAttempt();
  TestAttempt(const TestAttempt&) = delete;
  TestAttempt& operator=(const TestAttempt&) = delete;

  void AddWorker(const std::string& node, int local_rank);

  pid_t Start();
  AttemptReport Report() const { return ReportOn(directory()); }
  // Fails the test if it does not end.
  AttemptEnd WaitForEnd() const;
  // Until a script has written this file, whole lines; returns it. Fails the test if none does.
  std::string WaitForFile(const std::string& name) const;

  std::string Log(int rank) const;
  const std::string& directory() const { return directory_; }
  const std::string& work() const { return work_; }

  AttemptPlan plan;

 private:
  TemporaryDirectory temporary_;
  std::string directory_, work_;
};

}  // namespace renzan::cluster::local
