#pragma once

// The terminal output and the logs in the run directory, on rank 0.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "renzan/base/clock.h"
#include "renzan/config/train_config.h"
#include "renzan/run/agreement.h"
#include "renzan/run/loop.h"
#include "renzan/run/splits.h"
#include "renzan/saving/checkpointer.h"
#include "renzan/saving/resume.h"

namespace renzan {

class RunObserver : public TrainObserver, public CheckpointObserver {
 public:
  struct Options {
    std::string run_dir;
    std::string model;                // where it will be
    bool says_run_directory = false;  // because the user has not named it
    std::string how_to_resume;        // what goes on with a run that was stopped
    std::string status_copy;          // of status.json; empty: none
    std::string config_yaml;
    const TrainConfig* config = nullptr;
    const OpenedSplits* splits = nullptr;
    std::vector<EvaluatedOutput> outputs;
    std::string initialized_from;  // for the manifest
    ProgramFacts facts;
    std::string backend;
    std::vector<std::string> hosts;  // by rank
    int threads = 1;
    bool terminal = false;
    const Clock* clock = nullptr;
    std::optional<ResumePoint> resumed;
  };
  explicit RunObserver(Options options);
  ~RunObserver() override;

  void OnStart(const LoopState& first, int64_t steps) override;
  void OnStep(int64_t done, double seconds) override;
  void OnReport(const StepReport& report) override;
  void OnEvaluation(int64_t step, std::span<const EvaluatedOutput> outputs,
                    std::span<const Evaluation> evaluations, const std::string& verdict) override;
  void OnPlateau(double factor) override;
  void OnAdvice(const std::string& advice) override;

  void OnCheckpoint(const CheckpointReport& report) override;
  void OnStopping(int64_t step, bool saves) override;

  // The model, of `model_step`, is saved. Completes the manifest and prints the summary.
  void OnDone(const LoopState& state, int64_t model_step, const std::string& model_sha256);
  // The run has stopped as requested.
  void OnStopped();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace renzan
