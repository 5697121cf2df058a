#include "renzan/train/run.h"

#include <memory>

#include "renzan/base/error.h"
#include "renzan/base/file.h"
#include "renzan/base/host.h"
#include "renzan/base/log.h"
#include "renzan/base/thread_pool.h"
#include "renzan/nn/isa.h"
#include "renzan/train/agreement.h"
#include "renzan/train/gather.h"
#include "renzan/train/hybrid_model.h"
#include "renzan/train/loop.h"
#include "renzan/train/model_io.h"
#include "renzan/train/run_observer.h"
#include "renzan/train/splits.h"

namespace renzan {
namespace {

void RefuseToOverwrite(const std::string& run_dir) {
  if (!run_dir.empty() && FileExists(run_dir + "/manifest.json"))
    Fail(ErrorCode::kCantCreate, "{} holds a run already: choose another --run-dir, or remove it",
         run_dir);
}

// Rank 0 chooses and creates the directory; everyone learns its name.
std::string MakeRunDirectory(const TrainConfig& config, const std::string& name, Communicator& comm,
                             const Clock& clock) {
  std::string dir;
  if (comm.rank() == 0) {
    dir = config.run_dir;
    if (dir.empty()) {
      const std::string stem = fmt::format("runs/{}-{}", name, FormatUtc(clock.UnixSeconds()));
      dir = stem;
      for (int i = 2; FileExists(dir); ++i) dir = fmt::format("{}.{}", stem, i);
    }
    CreateDirectories(dir);
  }
  return BroadcastString(comm, dir);
}

}  // namespace

RunResult RunTraining(const TrainConfig& config, const std::string& name, int threads,
                      Communicator& comm, const Clock& clock, bool terminal) {
  const std::string isa = SelectIsa(config.numerics.isa);
  CheckSameRun(comm, config, isa);
  if (comm.rank() == 0) RefuseToOverwrite(config.run_dir);
  ThreadPool pool(threads);
  const OpenedSplits splits = OpenSplits(config.data, config.features, comm);
  const int64_t steps = NumSteps(config.training, splits.train);
  HybridModel model(config, splits.train.dataset->schema(), EstimatePoolingFactors(splits.train),
                    comm, pool);
  const std::string run_dir = MakeRunDirectory(config, name, comm, clock);

  TrainConfig resolved = config;
  resolved.run_dir = run_dir;
  resolved.features = FeaturesOf(splits.train.dataset->schema());
  const std::string config_yaml =
      PrintConfig([&](ConfigFields& fields) { resolved.Describe(fields); });
  const std::vector<std::string> hosts = GatherStrings(comm, HostName());
  std::unique_ptr<RunObserver> observer;
  if (comm.rank() == 0)
    observer = std::make_unique<RunObserver>(
        RunObserver::Options{.run_dir = run_dir,
                             .config_yaml = config_yaml,
                             .config = &config,
                             .splits = &splits,
                             .isa = isa,
                             .backend = comm.backend(),
                             .libraries = {{"oneDNN", MatmulLibraryVersion()}},
                             .hosts = hosts,
                             .threads = threads,
                             .terminal = terminal,
                             .clock = &clock});
  const TrainResult result =
      Train(config, steps, splits.train, splits.eval, model, comm, threads, clock, observer.get());
  const std::string sha256 = SaveModel(model, comm, run_dir + "/model", result.steps, config_yaml);
  if (observer) observer->OnDone(result, sha256);
  return {run_dir, sha256};
}

}  // namespace renzan
