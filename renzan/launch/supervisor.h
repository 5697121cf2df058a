#pragma once

// Supervises workers that were started together until all have ended: forwards signals, stops the
// others when one dies, and reports the cause: a worker or a stop request. For the main thread.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/process/pipe.h"
#include "renzan/base/process/process_end.h"
#include "renzan/base/process/signals.h"
#include "renzan/launch/launch.h"
#include "renzan/launch/launch_result.h"
#include "renzan/launch/mpirun_output.h"
#include "renzan/launch/mpirun_watch.h"
#include "renzan/launch/worker_status.h"

namespace renzan {

struct Worker {
  std::string name;  // "worker 2"
  pid_t pid = -1;
  bool running = true;
  ProcessEnd end = {};  // once it no longer runs
};

// A pipe for mpirun's stderr, which is shown as it arrives.
class OutputRelay {
 public:
  OutputRelay();
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  // -1 when all has been read.
  int read_fd() const { return ended_ ? -1 : pipe_.read_end.get(); }
  int write_fd() const { return pipe_.write_end.get(); }
  void CloseWriteEnd() { pipe_.write_end.Close(); }

  // Shows the available output without waiting.
  void Drain();
  // After mpirun has ended: shows the remaining output and returns what mpirun said about the first
  // failing worker.
  const std::optional<MpiWorkerEnd>& Finish();

 private:
  Pipe pipe_;
  bool ended_ = false;
  MpirunOutput output_;
};

class Supervisor {
 public:
  // If `mpirun` is not null, the only process is mpirun itself, whose children are the workers.
  // References must outlive this object.
  // oom_kills_before: OomKills() before the workers were started.
  Supervisor(std::vector<Worker> workers, OutputRelay* mpirun, const SignalQueue& signals,
             const LaunchOptions& options, int64_t oom_kills_before);
  // Kills the workers that still run.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Returns when all workers have ended.
  LaunchResult Run();

 private:
  // How a process ended; with mpirun, how the worker that it names ended.
  struct End {
    std::string who;
    ProcessEnd how;
    bool is_mpirun = false;  // mpirun itself failed, or did not explain the failure
  };
  // How likely an end is the cause of the others, in ascending order.
  enum class Severity { kNone, kRequested, kLostPeer, kError, kSignal };

  bool AnyRunning() const;
  void Reap();
  void TakeFailure(const End& end, Severity severity);
  End EndOf(const Worker& worker, int status) const;
  Severity SeverityOf(const End& end) const;
  LaunchResult Result() const;
  double SecondsUntilNextStep() const;
  void StopTheRest();
  void EndHungMpirun();
  void PlanToGrow();
  void StopToGrow();
  // Also the workers of mpirun.
  std::vector<pid_t> RunningWorkers() const;
  WorkerProgram ProgramOf(const End& end) const;
  void Kill() const;
  void Forward(int signal) const;

  std::vector<Worker> workers_;
  OutputRelay* mpirun_;
  const SignalQueue& signals_;
  const WorkerProgram program_;
  double grace_seconds_;
  const std::chrono::duration<double> grow_after_;
  std::optional<std::chrono::steady_clock::time_point> grow_at_;
  bool cannot_grow_ = false;  // already logged
  const int64_t oom_kills_before_;
  MpirunWatch mpirun_watch_;
  bool mpirun_hung_ = false;
  std::optional<std::chrono::steady_clock::time_point> first_failure_, grace_start_;
  std::optional<End> cause_;
  Severity cause_severity_ = Severity::kNone;
  int requested_ = 0;     // the last SIGINT, SIGTERM or SIGHUP received
  bool growing_ = false;  // StopToGrow() has asked the workers to stop
  int answer_ = 0;        // the exit status if no worker fails
  int died_ = 0;          // as in LaunchResult
  bool terminated_ = false;
};

}  // namespace renzan
