// renzan train CONFIG.yaml | --rerun DIR

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"
#include "renzan/cli/rerun.h"
#include "renzan/cli/verbs.h"
#include "renzan/cli/workers.h"
#include "renzan/train/config.h"
#include "renzan/train/run.h"

namespace renzan {
namespace {

struct TrainFlags {
  std::string config_path, rerun;
  std::vector<std::string> overrides;
  bool print_config = false;
  int workers = 0, threads = 0;
  std::string backend, run_dir;
};

// Flags are shorthand for the keys they override.
std::vector<std::string> AllOverrides(const TrainFlags& flags) {
  std::vector<std::string> overrides = flags.overrides;
  if (flags.workers != 0) overrides.push_back(fmt::format("workers={}", flags.workers));
  if (flags.threads != 0) overrides.push_back(fmt::format("threads={}", flags.threads));
  if (!flags.backend.empty()) overrides.push_back("comm.backend=" + flags.backend);
  return overrides;
}

int RunTrain(const TrainFlags& flags) {
  if (flags.config_path.empty() == flags.rerun.empty() && !flags.print_config)
    Fail(ErrorCode::kUsage,
         "name either a configuration file or --rerun DIR (see renzan train "
         "--help)");
  TrainConfig config;
  const auto describe = [&](ConfigFields& fields) { config.Describe(fields); };
  std::string name;
  if (flags.config_path.empty() && flags.rerun.empty()) {
    ReadConfigText("", "defaults", AllOverrides(flags), describe);
  } else if (flags.rerun.empty()) {
    ReadConfigFile(flags.config_path, AllOverrides(flags), describe);
    name = std::filesystem::path(flags.config_path).stem().string();
  } else {
    // The manifest's own run_dir names the run to repeat, never where to put the repetition.
    std::vector<std::string> overrides = {"run_dir=''"};
    for (const std::string& o : AllOverrides(flags)) overrides.push_back(o);
    ReadRecordedConfig(flags.rerun, overrides, describe);
    name = "rerun";
  }
  if (!flags.run_dir.empty()) config.run_dir = flags.run_dir;
  if (flags.print_config) {
    std::fputs(PrintConfig(describe, true).c_str(), stdout);
    return 0;
  }
  if (config.data.train.path.empty())
    Fail(ErrorCode::kConfig, "{}: data.train.path is missing: name a dataset directory",
         flags.config_path);
  // The launch contract's directory, unless the user names one.
  if (const char* dir = std::getenv("RENZAN_RUN_DIR"); dir != nullptr && config.run_dir.empty())
    config.run_dir = dir;

  int status = 0;
  const int launched = RunWorkers({.workers = config.workers,
                                   .threads = config.threads,
                                   .backend = config.comm.backend,
                                   .timeout_seconds = config.comm.timeout_seconds},
                                  [&](Communicator& comm, int threads) {
                                    const bool terminal = ::isatty(STDERR_FILENO) != 0;
                                    if (!flags.rerun.empty()) CheckSameData(flags.rerun, config);
                                    const RunResult result = RunTraining(
                                        config, name, threads, comm, SystemClock(), terminal);
                                    if (comm.rank() == 0 && !flags.rerun.empty())
                                      status = CompareWithRecorded(flags.rerun, result);
                                  });
  return launched != 0 ? launched : status;
}

}  // namespace

void AddTrainVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("train", "Train a model");
  const auto flags = std::make_shared<TrainFlags>();
  verb->add_option("config", flags->config_path, "YAML configuration");
  verb->add_option("--set", flags->overrides, "Override one key: --set training.batch_size=4096")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--print-config", flags->print_config,
                 "Print the resolved configuration with every default, and stop");
  verb->add_option("--rerun", flags->rerun,
                   "Repeat the run in this run directory and say whether the model is identical "
                   "(exit 1 if not)");
  verb->add_option("--workers", flags->workers, "Start this many workers on this machine")
      ->check(CLI::PositiveNumber);
  verb->add_option("--threads", flags->threads, "Threads per worker")->check(CLI::PositiveNumber);
  verb->add_option("--backend", flags->backend, "auto, local, gloo or mpi");
  verb->add_option("--run-dir", flags->run_dir, "Where logs and the model go");
  verb->footer(
      "Examples:\n"
      "  renzan train examples/dlrm.yaml --workers 2\n"
      "  mpirun -n 4 renzan train examples/dlrm.yaml\n"
      "  renzan train --rerun runs/dlrm-2026-01-31T12:00:00Z");
  verb->callback([flags, &exit_status] { exit_status = RunTrain(*flags); });
}

}  // namespace renzan
