#pragma once

// For tests: an attempt in a temporary directory, run by a real renzan-supervisor, whose workers
// are shell scripts.

#include <sys/types.h>

#include <functional>
#include <string>

#include "renzan/base/file/file.h"
#include "renzan/base/process/process_table.h"
#include "renzan/cluster/local/supervisor/attempt.h"

namespace renzan::cluster::local {

using renzan::IsAlive;  // of a process, besides that of an attempt's phase

// Polls the condition every few milliseconds; false after a minute.
bool Eventually(const std::function<bool()>& condition);

class TestAttempt {
 public:
  // One worker on n0 that runs `script` in a shell as the current user, in work().
  explicit TestAttempt(const std::string& script);
  // Ends the attempt if it still runs.
  ~TestAttempt();
  TestAttempt(const TestAttempt&) = delete;
  TestAttempt& operator=(const TestAttempt&) = delete;

  void AddWorker(const std::string& node, int local_rank);

  pid_t Start();
  AttemptReport Report() const { return ReportOn(directory()); }
  // Fails the test if the attempt does not end.
  AttemptEnd WaitForEnd() const;
  // Returns the file's content once a script has written it and it ends with a newline. Fails the
  // test if none does.
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
