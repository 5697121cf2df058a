#include "renzan/cli/train/saved_model.h"

#include <CLI/CLI.hpp>
#include <optional>

#include "renzan/base/build_id.h"
#include "renzan/base/log.h"
#include "renzan/cli/train/model_directory.h"
#include "renzan/nn/isa.h"
#include "renzan/train/agreement.h"
#include "renzan/train/gather.h"
#include "renzan/train/heartbeat.h"
#include "renzan/train/resume.h"
#include "renzan/train/splits.h"

namespace renzan {
namespace {

// The same checkpoint for all: the run may be writing a newer one at this moment.
std::string Resolve(const std::string& path, Communicator& comm) {
  const ModelPlace place = FindModel(path);
  if (comm.rank() == 0 && !place.note.empty()) LogInfo("{}", place.note);
  return BroadcastString(comm, place.dir);
}

}  // namespace

void AddSavedModelFlags(CLI::App& verb, SavedModelFlags& flags) {
  verb.add_option("model", flags.model, "A run, a model or a checkpoint")->required();
  verb.add_option("--data", flags.data, "Dataset directory")->required();
  verb.add_option("--rows", flags.rows, "Only rows BEGIN END of it")->expected(2);
  verb.add_option("--workers", flags.workers, "Start this many workers on this machine")
      ->check(CLI::PositiveNumber);
  verb.add_option("--threads", flags.threads, "Threads per worker")->check(CLI::PositiveNumber);
  verb.add_option("--backend", flags.backend, "auto, local, gloo or mpi");
}

int WithSavedModel(const SavedModelFlags& flags,
                   const std::function<void(HybridModel&, const TrainConfig&, Communicator&,
                                            const Dataset&, RowRange)>& body) {
  return RunWorkers(
      {.workers = flags.workers, .threads = flags.threads, .backend = flags.backend},
      [&](Communicator& comm, int threads) {
        CheckpointReader reader(Resolve(flags.model, comm));
        TrainConfig config;
        ReadConfigText(reader.config(), reader.dir() + "/manifest.json", {},
                       [&](ConfigFields& fields) { config.Describe(fields); });
        CheckSameRun(comm, config, FactsOfThisProgram(BuildId(), SelectIsa(config.numerics.isa)));
        const Dataset dataset(flags.data);
        CheckFeatures(config.features, dataset);
        const RowRange rows = ResolveRows(flags.rows, dataset, "--rows");
        ThreadPool pool(threads);
        // Nothing is trained: these optimizers have no state to make room for.
        config.optimizer.dense.type = config.optimizer.sparse.type = "sgd";
        std::optional<HybridModel> model;
        RunWithHeartbeats(comm, [&] {
          model.emplace(config, dataset.schema(), EstimatePoolingFactors({&dataset, rows}), comm,
                        pool, InitialValues::kZero);
          LoadModel(reader, false, &*model);
        });
        body(*model, config, comm, dataset, rows);
      });
}

}  // namespace renzan
