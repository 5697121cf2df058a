// renzan predict MODEL --data DIR --output scores.npy|scores.csv

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

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
  verb->add_option("--output", *output, "scores.npy or scores.csv: probabilities in row order")
      ->required();
  verb->add_option("--with", *with,
                   "Columns of the data to write before the scores: --with user,item")
      ->delimiter(',');
  verb->footer(
      "Examples:\n"
      "  renzan predict runs/dlrm-2026-01-31T12:00:00Z --data data/test --output scores.npy\n"
      "  renzan predict runs/dlrm-2026-01-31T12:00:00Z --data data/test --output scores.csv "
      "--with user,item");
  verb->callback([flags, output, with, &exit_status] {
    CheckScoreFileName(*output, *with);
    exit_status =
        WithSavedModel(*flags, [&](Step& model, const TrainConfig& config, Communicator& comm,
                                   const Dataset& dataset, RowRange rows) {
          std::unique_ptr<ScoreFile> file;
          std::function<bool()> stopped;  // so that no partial file is left behind
          if (comm.rank() == 0) stopped = StopOnSignals();
          // On all workers, so that all say what is wrong. Vocabularies may be in a store.
          ScoreFile::CheckColumns(dataset, *with);
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
                "probabilities where there are all",
                NegativesText(kept), shift);
          PredictRows(model, comm, dataset, rows, config.training.batch_size, shift,
                      [&](std::span<const float> logits) {
                        ThrowIfStopped(stopped);
                        file->Append(logits);
                      });
          if (file) file->Close();
          if (file) LogInfo("wrote {} scores to {}", rows.size(), *output);
        });
  });
}

}  // namespace renzan
