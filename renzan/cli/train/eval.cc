// renzan eval MODEL --data DIR

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cli/train/saved_model.h"
#include "renzan/cli/verbs.h"

namespace renzan {
namespace {

void Print(const BinaryMetrics& metrics, const Dataset& dataset, bool json) {
  if (json) {
    const nlohmann::ordered_json out = {{"rows", metrics.count + metrics.non_finite},
                                        {"not_finite", metrics.non_finite},
                                        {"auc", metrics.Auc()},
                                        {"log_loss", metrics.LogLoss()},
                                        {"normalized_entropy", metrics.NormalizedEntropy()},
                                        {"calibration", metrics.Calibration()},
                                        {"accuracy", metrics.Accuracy()}};
    fmt::print("{}\n", out.dump());
    return;
  }
  fmt::print("rows                {}\n", metrics.count + metrics.non_finite);
  fmt::print("AUC                 {:.5f}", metrics.Auc());
  if (dataset.planted()) fmt::print("  (best reachable {:.5f})", dataset.planted()->best_auc);
  fmt::print("\nlog loss            {:.5f}\n", metrics.LogLoss());
  fmt::print("normalized entropy  {:.5f}\n", metrics.NormalizedEntropy());
  fmt::print("calibration         {:.4f}\n", metrics.Calibration());
  fmt::print("accuracy            {:.4f}\n", metrics.Accuracy());
}

}  // namespace

void AddEvalVerb(CLI::App& app, int& exit_status) {
  CLI::App* verb = app.add_subcommand("eval", "Measure a trained model on a dataset");
  const auto flags = std::make_shared<SavedModelFlags>();
  const auto json = std::make_shared<bool>(false);
  AddSavedModelFlags(*verb, *flags);
  verb->add_flag("--json", *json, "One JSON object");
  verb->footer("Example:\n  renzan eval runs/dlrm-2026-01-31T12:00:00Z --data data/test");
  verb->callback([flags, json, &exit_status] {
    exit_status = WithSavedModel(*flags, [&](HybridModel& model, const TrainConfig& config,
                                             Communicator& comm, const Dataset& dataset,
                                             RowRange rows) {
      const BinaryMetrics metrics =
          *Evaluate(model, comm, dataset, rows, config.training.batch_size, [] { return false; });
      if (comm.rank() != 0) return;
      Print(metrics, dataset, *json);
      if (metrics.non_finite > 0)
        Fail(ErrorCode::kSoftware, "{} of {} predictions are NaN or infinite: the model is lost",
             metrics.non_finite, metrics.count + metrics.non_finite);
    });
  });
}

}  // namespace renzan
