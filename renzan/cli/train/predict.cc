// renzan predict MODEL --data DIR --output scores.csv|scores.npy|scores.parquet

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "renzan/base/file/staged.h"
#include "renzan/base/log.h"
#include "renzan/cli/stop_signals.h"
#include "renzan/cli/train/saved_model.h"
#include "renzan/cli/train/score_file.h"
#include "renzan/cli/verbs.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/text/input.h"

namespace renzan {
void AddPredictVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("predict", "Write a trained model's scores for a dataset");
  const auto flags = std::make_shared<SavedModelFlags>();
  const auto output = std::make_shared<std::string>();
  const auto with = std::make_shared<std::vector<std::string>>();
  AddSavedModelFlags(*verb, *flags);
  verb->add_option("--output", *output,
                   "scores.csv, scores.npy or scores.parquet: probabilities in row order")
      ->required();
  verb->add_option(
          "--with", *with,
          "Columns of the data to write before the scores (not into .npy): --with user,item")
      ->delimiter(',');
  verb->footer(
      "Examples:\n"
      "  renzan predict runs/dlrm-2026-01-31T12:00:00Z --data data/test --output scores.npy\n"
      "  renzan predict runs/dlrm-2026-01-31T12:00:00Z --data data/test --output scores.parquet "
      "--with user,item\n"
      "The data needs no label: import it with --vocabulary-from the training data.");
  verb->callback([flags, output, with, &exit_status] {
    ScoreFormatOf(*output, !with->empty());
    exit_status =
        WithSavedModel(*flags, [&](Predictor& model, const TrainConfig& config, Communicator& comm,
                                   const Dataset& dataset, RowRange rows) {
          // A worker that a signal kills makes the launcher kill the others, too soon for one that
          // waits for a disk to remove its part of a file.
          const std::function<bool()> stopped = StopOnSignals();
          comm.Barrier();  // before there is a file, on all of them
          // On all workers, so that all say what is wrong. Vocabularies may be in a store.
          CheckScoreColumns(dataset, *with);
          std::unique_ptr<ScoreFile> file;
          RunWithHeartbeats(comm, [&] {
            if (comm.rank() == 0)
              file = std::make_unique<ScoreFile>(*output, dataset, *with, rows.begin);
          });
          // For the whole population, whatever the shares in training and in this dataset.
          const double kept = config.features.negatives_kept;
          const float shift = LogitShift(kept, 1);
          if (shift != 0 && comm.rank() == 0)
            LogInfo(
                "the model was trained on {}: logits are shifted by {:.4f}, so that scores are "
    CheckOutputFile(*output);
                "probabilities for data with all negatives",
                NegativesText(kept), shift);
          const auto append = [&](std::span<const float> logits) {
            ThrowIfStopped(stopped);
            if (file) file->Append(logits);
          };
          try {
            PredictRows(model, comm, dataset, rows, config.training.batch_size, shift, append);
          } catch (const Error&) {
            ThrowIfStopped(stopped);  // another worker may have stopped before this one
            throw;
          }
          if (file) file->Close();
          if (file) LogInfo("wrote {} scores to {}", rows.size(), *output);
        });
  });
}

}  // namespace renzan
