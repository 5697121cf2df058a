#pragma once

// Watches over the workers of one run until all are gone: passes signals on, ends the others when
// one dies, and says who was the cause. For the main thread.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "renzan/train/child_process.h"
#include "renzan/train/mpirun_output.h"

namespace renzan {

struct Worker {
  std::string name;  // "worker 2"
  pid_t pid = -1;
  bool running = true;
  int status = 0;  // of waitpid
};

// A pipe for mpirun's stderr, which is shown while it comes.
class OutputRelay {
 public:
  OutputRelay();
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  // -1 when all has been read.
  int read_fd() const { return ended_ ? -1 : fds_[0]; }
  int write_fd() const { return fds_[1]; }
  void CloseWriteEnd();

  // Shows what is there, without waiting.
  void Drain();
  // The last of it, and what mpirun said about the worker that failed first.
  const std::optional<MpiWorkerEnd>& Finish();

 private:
  int fds_[2] = {-1, -1};
  bool ended_ = false;
  MpirunOutput output_;
};

class Supervisor {
 public:
  // With `mpirun` (not null) the only process is mpirun itself, whose children are the workers.
  // References must outlive this object.
  Supervisor(std::vector<Worker> workers, OutputRelay* mpirun, const SignalQueue& signals,
             double grace_seconds);
  // Kills whoever still runs.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // As LaunchLocalWorkers.
  int Run();

 private:
  bool AnyRunning() const;
  void Reap();
  double SecondsSinceFailure() const;
  double SecondsUntilNextStep() const;
  void EndTheRest();
  void Signal(int signal) const;
  void PassOn(int signal) const;

  std::vector<Worker> workers_;
  OutputRelay* mpirun_;
  const SignalQueue& signals_;
  double grace_seconds_;
  std::optional<std::chrono::steady_clock::time_point> first_failure_;
  std::optional<Worker> cause_;
  bool stopped_on_request_ = false;
  bool terminated_ = false;
};

}  // namespace renzan
