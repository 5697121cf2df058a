// renzan predict MODEL --data DIR --output scores.csv|scores.npy|scores.parquet

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "renzan/base/counted.h"
#include "renzan/base/file/staged.h"
#include "renzan/base/log.h"
#include "renzan/cli/stop_signals.h"
#include "renzan/cli/train/saved_model.h"
#include "renzan/cli/train/score_file.h"
#include "renzan/cli/verbs.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/skipped_rows.h"
#include "renzan/data/text/input.h"

namespace renzan {
namespace {

// Rows that the import skipped have no scores, so that scores do not join the input by position.
void SayWhatWasSkipped(const Dataset& dataset) {
  const DatasetManifest& manifest = dataset.manifest();
  if (manifest.skipped_rows == 0) return;
  LogInfo(
      "the import of {} skipped {} ({}/{}), which {} no score: join scores by a key, or "
      "by --with {}, the row's number in the input",
      dataset.directory(), Counted(manifest.skipped_rows, "bad row"), dataset.directory(),
      NameInDataset(manifest, kSkippedRowsName), manifest.skipped_rows == 1 ? "has" : "have",
      kInputRowName);
}

}  // namespace

void AddPredictVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("predict", "Write a trained model's scores for a dataset");
  const auto flags = std::make_shared<SavedModelFlags>();
  const auto output = std::make_shared<std::string>();
  const auto with_lists = std::make_shared<std::vector<std::string>>();
  AddSavedModelFlags(*verb, *flags, /*needs_data=*/true);
  verb->add_option(
          "--output", *output,
          "scores.csv, scores.npy or scores.parquet: probabilities, or numbers where the model "
          "learned them (squared_error), in row order; .npy is an array of numbers, with --with a "
          "structured one")
      ->required();
  verb->add_option(
      "--with", *with_lists,
      "Columns of the data to write before the scores: --with user,item; "
      "input_row is the row's number in the input, from 0; a name with a comma is quoted as in "
      "CSV: --with '\"city, state\",user'");
  verb->footer(
      "Examples:\n"
      "  renzan predict runs/dlrm-2026-01-31T12:00:00Z --data data/test --output scores.npy\n"
      "  renzan predict runs/dlrm-2026-01-31T12:00:00Z --data data/test --output scores.parquet "
      "--with user,item\n"
      "The data needs no label: import it with --vocabulary-from the training data.");
  verb->callback([flags, output, with_lists, &exit_status] {
    const std::vector<std::string> with = ScoreColumnNames(*with_lists);
    ScoreFormatOf(*output);
    CheckOutputFile(*output);
    exit_status =
        WithSavedModel(*flags, [&](Predictor& model, const TrainConfig& config, Communicator& comm,
                                   const Dataset& dataset, RowRange rows) {
          // A worker that a signal kills makes the launcher kill the others, too soon for one that
          // waits for a disk to remove its part of a file.
          const std::function<bool()> stopped = StopOnSignals();
          comm.Barrier();  // before there is a file, on all of them
          // On all workers, so that all say what is wrong. Vocabularies may be in a store.
          const std::vector<ModelOutput> outputs = OutputsOf(config.model);
          CheckScoreColumns(dataset, with, ScoreNames(outputs));
          std::unique_ptr<ScoreFile> file;
          RunWithHeartbeats(comm, [&] {
            if (comm.rank() == 0)
              file = std::make_unique<ScoreFile>(*output, dataset, with, outputs, rows);
          });
          // For the whole population, whatever the shares in training and in this dataset.
          const double kept = config.features.negatives_kept;
          const float shift = LogitShift(kept, 1);
          if (shift != 0 && comm.rank() == 0)
            LogInfo(
                "the model was trained on {}: logits are shifted by {:.4f}, so that scores are "
                "probabilities for data with all negatives",
                NegativesText(kept), shift);
          const auto append = [&](const LogitsByOutput& logits) {
            ThrowIfStopped(stopped);
            if (file) file->Append(logits);
          };
          try {
            PredictRows(model, comm, dataset, rows, config.training.batch_size,
                        ShiftsOf(outputs, shift), append);
          } catch (const Error&) {
            ThrowIfStopped(stopped);  // another worker may have stopped before this one
            throw;
          }
          if (file) file->Close();
          if (file) LogInfo("wrote {} to {}", Counted(rows.size(), "score"), *output);
          if (file) SayWhatWasSkipped(dataset);
        });
  });
}

}  // namespace renzan
