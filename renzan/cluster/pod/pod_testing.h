#pragma once

// For tests: a command under PodRun() in a process of its own, with a temporary directory as the
// world outside.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "renzan/base/file/file.h"
#include "renzan/base/process/process_end.h"
#include "renzan/cluster/pod/pod_run.h"

namespace renzan::cluster::pod {

// Polls the condition every few milliseconds; false after a minute.
bool Eventually(const std::function<bool()>& condition);

// Replaces the volume of a pod's annotations as a kubelet does.
void WriteAnnotation(const std::string& volume, const std::string& checkpoint_request);

class TestPod {
 public:
  // `script` runs in a shell, in directory().
  explicit TestPod(const std::string& script);
  // Kills it if it still runs.
  ~TestPod();
  TestPod(const TestPod&) = delete;
  TestPod& operator=(const TestPod&) = delete;

  void Set(const std::string& variable, const std::string& value);
  void Start();
  void Signal(int signal) const;
  // Fails the test if it does not end.
  ProcessEnd WaitForEnd();

  // The file's content once it has been written and ends with a newline. Fails the test if it is
  // not.
  std::string WaitForFile(const std::string& name) const;
  // What the command and PodRun() have written to stderr.
  std::string Stderr() const;
  std::string TerminationLog() const;

  const std::string& directory() const { return directory_.path(); }
  std::string operator/(const std::string& name) const { return directory_ / name; }
  std::string volume() const { return directory_ / "pod"; }

  PodRunOptions options;

 private:
  TemporaryDirectory directory_;
  pid_t pid_ = 0;
};

}  // namespace renzan::cluster::pod
