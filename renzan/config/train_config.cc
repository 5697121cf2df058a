#include "renzan/config/train_config.h"

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/config/decides.h"
#include "renzan/model/model.h"
#include "renzan/model/output_metric.h"

namespace renzan {

int NumWorkers(const TrainConfig& config, int cores) {
  if (config.workers > 0) return config.workers;
  return std::max({1, config.elastic.min, std::min(config.elastic.max, cores)});
}

std::string TooManyWorkers(int workers, int virtual_workers) {
  return fmt::format(
      "= {} is more than the {}: use at most {}, or raise "
      "numerics.virtual_workers (which changes rounding)",
      workers, Counted(virtual_workers, "virtual worker"), virtual_workers);
}

// "are 96 and 104"; "is 8" where 0 would be the other one.
static std::string NearestMultiples(int64_t number, int64_t of) {
  const int64_t below = number / std::max<int64_t>(1, of) * of;
  return below == 0 ? fmt::format("is {}", of) : fmt::format("are {} and {}", below, below + of);
}

void TrainConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Field("seed", &seed);
  fields.Tag(Decides::kClass);
  fields.Choice("device", &device, {"cpu", "cuda"},
                "where workers compute; cuda: each on a GPU, whose class determines the bits");
  fields.Section("data", &data);
  fields.Section("features", &features,
                 "the columns that a dataset must have, recorded by training; any when empty");
  fields.Section("model", &model);
  fields.Section("training", &training);
  fields.Section("optimizer", &optimizer);
  fields.Section("numerics", &numerics);
  fields.Section("sharding", &sharding, "which worker holds what; never changes the result");
  fields.Section("comm", &comm);
  fields.Section("checkpoint", &checkpoint, "written while training continues");
  fields.Section("elastic", &elastic, "restarts of workers on this machine");
  fields.Tag(Decides::kPlacement);
  fields.Range("workers", &workers, 0, 1024,
               "processes on this machine; 0: as many as elastic.max and the cores allow, or one");
  fields.Range("threads", &threads, 0, 1024,
               "per worker; 0: share the CPUs available to this process");
  fields.Tag(Decides::kRun);
  fields.Field("check_memory", &check_memory,
               "refuse to start if the workers would need more memory than there is");
  fields.Tag(Decides::kPlacement);
  fields.Field("run_dir", &run_dir, "where logs and the model go; runs/NAME-TIME when empty");
  fields.Require(
      training.batch_size % numerics.virtual_workers == 0, "training",
      fmt::format("has batch_size {}, which must be a multiple of numerics.virtual_workers ({}): "
                  "the nearest {}",
                  training.batch_size, numerics.virtual_workers,
                  NearestMultiples(training.batch_size, numerics.virtual_workers)));
  fields.Require(numerics.precision != "tf32" || device == "cuda", "numerics",
                 "has precision tf32, which needs device: cuda");
  fields.Require(!training.watches_evaluations() || !data.eval.path.empty(), "training",
                 "has early_stopping.patience or keep_best, which need data.eval.path");
  fields.Require(
      !training.watches_evaluations() || training.eval_every > 0 || training.eval_every_epochs > 0,
      "training",
      "has early_stopping.patience or keep_best, which need eval_every or "
      "eval_every_epochs");
  const char* const plateau = "has schedule.plateau.patience, which needs ";
  fields.Require(training.ranking.empty() || !data.eval.path.empty(), "training",
                 "has ranking, which needs data.eval.path");
  fields.Require(!optimizer.schedule.watches_evaluations() ||
                     !IsRankingMetric(optimizer.schedule.plateau.metric) ||
                     !training.ranking.empty(),
                 "optimizer",
                 fmt::format("has schedule.plateau.metric {}, which needs training.ranking: [10], "
                             "or another rank",
                             optimizer.schedule.plateau.metric));
  fields.Require(training.group_by.empty() || !data.eval.path.empty(), "training",
                 "has group_by, which needs data.eval.path");
  fields.Require(!optimizer.schedule.watches_evaluations() ||
                     NeedsOf(optimizer.schedule.plateau.metric) != Needs::kGroups ||
                     !training.group_by.empty(),
                 "optimizer",
                 "has schedule.plateau.metric group_auc, which needs training.group_by: COLUMN");
  fields.Require(!optimizer.schedule.watches_evaluations() || !data.eval.path.empty(), "optimizer",
                 std::string(plateau) + "data.eval.path");
  fields.Require(!optimizer.schedule.watches_evaluations() || training.eval_every > 0 ||
                     training.eval_every_epochs > 0,
                 "optimizer",
                 std::string(plateau) + "training.eval_every or training.eval_every_epochs");
  fields.Require(
      !training.keep_best || checkpoint.quantize == "none", "checkpoint",
      "has quantize, which training.keep_best does not allow: the best model must be exact");
  // The columns of a row, in words, beside a key that sets them.
  const auto columns_of = [&](int64_t dim, const std::string& key) {
    const int64_t columns = RowColumns(model.type, dim);
    if (columns == dim) return fmt::format("{} ({})", key, dim);
    return fmt::format("the columns of a row, {}{} ({})", columns == 1 ? "" : key + " and ",
                       "a first-order weight", columns);
  };
  fields.Require(RowColumns(model.type, model.embedding_dim) % numerics.column_blocks == 0,
                 "numerics",
                 fmt::format("has column_blocks {}, which must divide {}", numerics.column_blocks,
                             columns_of(model.embedding_dim, "model.embedding_dim")));
  for (const auto& [name, table] : model.tables) {
    const int64_t dim = table.embedding_dim > 0 ? table.embedding_dim : model.embedding_dim;
    const int blocks = table.column_blocks > 0 ? table.column_blocks : numerics.column_blocks;
    const bool own = table.column_blocks > 0;
    fields.Require(
        RowColumns(model.type, dim) % blocks == 0, own ? "model" : "numerics",
        fmt::format(
            "has column_blocks {}{}, which must divide {}", blocks, own ? " for table " + name : "",
            columns_of(dim, own ? "embedding_dim" : "model.tables." + name + ".embedding_dim")));
  }
  for (const auto& [name, table] : model.tables) {
    const SparseOptimizerConfig& sparse = optimizer.sparse;
    const double rate = sparse.learning_rate * table.learning_rate_factor;
    fields.Require((sparse.weight_decay_mode != "decoupled" && sparse.rows != "all") ||
                       rate * sparse.weight_decay < 1,
                   "model",
                   fmt::format("has learning_rate_factor {} for table {}: times "
                               "optimizer.sparse.learning_rate and weight_decay it must be below "
                               "1, or a step would flip the sign of weights",
                               table.learning_rate_factor, name));
    fields.Require(sparse.type != "ftrl" || table.learning_rate_factor > 0, "model",
                   fmt::format("has learning_rate_factor 0 for table {}, which "
                               "optimizer.sparse.type: ftrl does not allow",
                               name));
  }
  fields.Require(
      optimizer.sparse.rows != "all" || numerics.embedding_precision == "fp32", "optimizer",
      fmt::format("has sparse.rows: all, which needs numerics.embedding_precision: fp32, "
                  "not {}",
                  numerics.embedding_precision));
  fields.Require(workers <= numerics.virtual_workers, "workers",
                 TooManyWorkers(workers, numerics.virtual_workers));
  fields.Require(elastic.max <= numerics.virtual_workers, "elastic",
                 "has max " + TooManyWorkers(elastic.max, numerics.virtual_workers));
  fields.Require(workers == 0 || elastic.max == 0 || workers <= elastic.max, "workers",
                 "must be at most elastic.max");
  fields.Require(workers == 0 || workers >= elastic.min, "workers", "must be at least elastic.min");
}

}  // namespace renzan
