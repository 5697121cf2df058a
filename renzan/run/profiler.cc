#include "renzan/run/profiler.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/base/trace.h"
#include "renzan/comm/gather.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/observe/trace_file.h"

namespace renzan {
namespace {

// The first steps fault pages in and fill caches.
constexpr int64_t kWarmUpSteps = 5;

int64_t Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// One moment on every worker's own clock. Workers of one host share a clock; between hosts it is
// the moment after a barrier, the median of several.
int64_t CommonMoment(Communicator& comm) {
  constexpr size_t kBarriers = 9;
  std::vector<int64_t> differences;
  const bool one_host = [&] {
    const std::vector<std::string> hosts = GatherStrings(comm, HostName());
    return std::all_of(hosts.begin(), hosts.end(),
                       [&](const std::string& host) { return host == hosts[0]; });
  }();
  int64_t first = 0;
  for (size_t i = 0; i < kBarriers; ++i) {
    comm.Barrier();
    const std::vector<int64_t> now = AllGatherValues(comm, Now());
    if (i == 0) first = now[0];
    differences.push_back(now[static_cast<size_t>(comm.rank())] - now[0]);
  }
  if (one_host) return first;
  std::nth_element(differences.begin(), differences.begin() + kBarriers / 2, differences.end());
  return first + differences[kBarriers / 2];
}

}  // namespace

StepProfiler::StepProfiler(int64_t steps, std::string path, Communicator& comm)
    : steps_(steps), path_(std::move(path)), comm_(comm), warm_up_(kWarmUpSteps) {
  if (steps_ > 0) NameTraceThread("main thread");
}

StepProfiler::~StepProfiler() {
  if (recording_) StopTrace();
}

void StepProfiler::OnStep() {
  if (steps_ == 0) return;
  ++done_;
  if (done_ == warm_up_) {
    zero_ns_ = CommonMoment(comm_);
    StartTrace();
    recording_ = true;
  } else if (recording_ && done_ == warm_up_ + steps_) {
    Write();
  }
}

void StepProfiler::Finish() {
  if (recording_) {
    Write();
  } else if (steps_ > 0 && done_ < warm_up_ && comm_.rank() == 0) {
    LogWarning("no trace was written: --profile records after the first {}",
               Counted(warm_up_, "step"));
  }
}

void StepProfiler::Write() {
  const Trace trace = StopTrace();
  recording_ = false;
  const std::vector<std::string> all =
      GatherStrings(comm_, TraceEventsJson(trace, comm_.rank(), HostName(), zero_ns_));
  RunWithHeartbeats(comm_, [&] {
    if (comm_.rank() != 0) return;
    try {
      WriteTraceFile(path_, all);
    } catch (const Error& error) {
      LogWarning("no trace was written: {}", error.what());
      return;
    }
    LogInfo("wrote a trace of {} to {}: open it with https://ui.perfetto.dev",
            Counted(done_ - warm_up_, "step"), path_);
  });
}

}  // namespace renzan
