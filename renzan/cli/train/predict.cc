// renzan predict MODEL --data DIR --output scores.npy|scores.csv

#include <CLI/CLI.hpp>
#include <cmath>
#include <functional>
#include <memory>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/staged.h"
#include "renzan/base/log.h"
#include "renzan/cli/stop_signals.h"
#include "renzan/cli/train/saved_model.h"
#include "renzan/cli/verbs.h"
#include "renzan/data/dataset/npy.h"
#include "renzan/data/text/input.h"
#include "renzan/model/loss.h"

namespace renzan {
namespace {

void CheckScoreFileName(const std::string& path) {
  if (!path.ends_with(".npy") && !path.ends_with(".csv"))
    Fail(ErrorCode::kUsage, "--output {}: the name must end in .npy or .csv", path);
}

// Writes scores as a float32 array [rows], or as text with a header and one score per line.
class ScoreFile {
 public:
  explicit ScoreFile(const std::string& path) : path_(path), staged_(path) {
    if (path.ends_with(".npy")) {
      npy_ = std::make_unique<NpyWriter>(staged_.staging(), NpyType::kFloat32);
    } else {
      csv_ = std::make_unique<FileWriter>(staged_.staging());
      csv_->Write("score\n");
    }
  }

  void Append(std::span<const float> logits) {
    rows_ += static_cast<int64_t>(logits.size());
    for (float logit : logits) {
      if (!std::isfinite(logit)) ++non_finite_;
      const float score = Sigmoid(logit);
      if (npy_) npy_->AppendValue(score);
      if (csv_) csv_->Write(fmt::format("{}\n", score));
    }
  }

  // Throws kSoftware, and leaves no file, when a prediction was NaN or infinite.
  void Close() {
    if (non_finite_ > 0)
      Fail(ErrorCode::kSoftware,
           "{} of {} predictions are NaN or infinite, so {} is not written: the model cannot be "
           "used, or the data hold values far outside the range it was trained on",
           non_finite_, rows_, path_);
    if (npy_) npy_->Close();
    if (csv_) csv_->Close();
    staged_.Commit();
  }

 private:
  std::string path_;
  StagedFile staged_;
  std::unique_ptr<NpyWriter> npy_;
  std::unique_ptr<FileWriter> csv_;
  int64_t rows_ = 0, non_finite_ = 0;
};

}  // namespace

void AddPredictVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("predict", "Write a trained model's scores for a dataset");
  const auto flags = std::make_shared<SavedModelFlags>();
  const auto output = std::make_shared<std::string>();
  AddSavedModelFlags(*verb, *flags);
  verb->add_option("--output", *output, "scores.npy or scores.csv: probabilities in row order")
      ->required();
  verb->footer(
      "Example:\n  renzan predict runs/dlrm-2026-01-31T12:00:00Z --data data/test "
      "--output scores.npy");
  verb->callback([flags, output, &exit_status] {
    CheckScoreFileName(*output);
    exit_status =
        WithSavedModel(*flags, [&](Step& model, const TrainConfig& config, Communicator& comm,
                                   const Dataset& dataset, RowRange rows) {
          std::unique_ptr<ScoreFile> file;
          std::function<bool()> stopped;  // so that no half of a file is left
          if (comm.rank() == 0) {
            stopped = StopOnSignals();
            file = std::make_unique<ScoreFile>(*output);
          }
          PredictRows(model, comm, dataset, rows, config.training.batch_size,
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
