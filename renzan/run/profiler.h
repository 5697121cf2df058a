#pragma once

// Records a trace of some training steps of all workers (`renzan train --profile N`), once training
// has warmed up. Every rank makes the same calls.

#include <cstdint>
#include <string>

#include "renzan/comm/communicator.h"

namespace renzan {

class StepProfiler {
 public:
  // Records `steps` steps after the first few and writes them to `path`; none if `steps` is 0.
  StepProfiler(int64_t steps, std::string path, Communicator& comm);
  // Discards what was not written.
  ~StepProfiler();
  StepProfiler(const StepProfiler&) = delete;
  StepProfiler& operator=(const StepProfiler&) = delete;

  // After every step of this process. Writes after the last recorded one; if that fails, training
  // goes on with a warning.
  void OnStep();

  // Writes what is recorded if training ended before OnStep did.
  void Finish();

 private:
  void Write();

  int64_t steps_;
  std::string path_;
  Communicator& comm_;
  int64_t done_ = 0;
  int64_t warm_up_;
  bool recording_ = false;
  int64_t zero_ns_ = 0;  // the moment that is 0 in the trace, on this worker's clock
};

}  // namespace renzan
