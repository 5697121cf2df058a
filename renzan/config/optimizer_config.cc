#include "renzan/config/optimizer_config.h"

#include "renzan/config/decides.h"
#include "renzan/config/rules.h"
#include "renzan/model/output_metric.h"
#include "renzan/optim/dense_optimizer.h"
#include "renzan/optim/sparse_optimizers.h"

namespace renzan {

namespace {

// With 0, a gradient of exactly 0 would give 0/0 on its first step.
constexpr double kMinEpsilon = 1e-30;
constexpr const char* kTooMuchDecay =
    "times learning_rate must be below 1, or a step would flip the sign of weights";

}  // namespace

void DenseOptimizerConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Choice("type", &type, DenseOptimizerNames());
  fields.Range("learning_rate", &learning_rate, 0, 1e6);
  fields.Range("epsilon", &epsilon, kMinEpsilon, 1);
  fields.Range("beta1", &beta1, 0, 1, "adam");
  fields.Range("beta2", &beta2, 0, 1, "adam");
  fields.Require(beta1 < 1, "beta1", "must be below 1");
  fields.Require(beta2 < 1, "beta2", "must be below 1");
  fields.Range("initial_accumulator", &initial_accumulator, 0, 1e6, "adagrad");
  fields.Range("weight_decay", &weight_decay, 0, 1e6, "decoupled: w *= 1 - learning_rate * this");
  fields.Require(learning_rate * weight_decay < 1, "weight_decay", kTooMuchDecay);
}

void SparseOptimizerConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Choice("type", &type, SparseOptimizerNames());
  fields.Range("learning_rate", &learning_rate, 0, 1e6);
  fields.Range("epsilon", &epsilon, kMinEpsilon, 1);
  fields.Range("beta1", &beta1, 0, 1, "adam");
  fields.Range("beta2", &beta2, 0, 1, "adam");
  fields.Require(beta1 < 1, "beta1", "must be below 1");
  fields.Require(beta2 < 1, "beta2", "must be below 1");
  fields.Range("momentum", &momentum, 0, 1, "momentum");
  fields.Require(momentum < 1, "momentum", "must be below 1");
  fields.Range("beta", &beta, kMinEpsilon, 1e6, "ftrl");
  fields.Range("l1", &l1, 0, 1e6, "ftrl");
  fields.Range("l2", &l2, 0, 1e6, "ftrl");
  fields.Range("initial_accumulator", &initial_accumulator, 0, 1e6, "adagrad, rowwise_adagrad");
  fields.Range("weight_decay", &weight_decay, 0, 1e6,
               "of the rows that a batch looks up, or of all (rows), once per step");
  fields.Choice("weight_decay_mode", &weight_decay_mode, {"decoupled", "l2"},
                "w *= 1 - learning_rate * weight_decay, or gradient += weight_decay * w");
  fields.Choice("rows", &rows, {"touched", "all"},
                "which take a step: those that a batch looks up, or all, as with dense gradients");
  fields.Require(
      (weight_decay_mode != "decoupled" && rows != "all") || learning_rate * weight_decay < 1,
      "weight_decay", kTooMuchDecay);
  for (const SparseOptimizerInfo& info : SparseOptimizers())
    fields.Require(rows != "all" || type != info.name || info.moves_all_rows, "rows",
                   fmt::format("must be touched with type: {}", info.name));
  if (type != "ftrl") return;
  fields.Require(learning_rate > 0, "learning_rate", "must be above 0 with type: ftrl");
  fields.Require(weight_decay == 0, "weight_decay",
                 "must be 0 with type: ftrl, which has l1 and l2");
}

void PlateauConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Choice("metric", &metric, ComparedMetricChoices(),
                "on data.eval, as training.early_stopping.metric");
  fields.Range("patience", &patience, 0, 1000000,
               "lower the rates after this many evaluations without improvement; 0: never");
  fields.Range("min_delta", &min_delta, 0, 1e6, "a smaller improvement does not count");
  fields.Range("factor", &factor, 0, 1, "multiplies the rates");
  fields.Require(factor < 1, "factor", "must be below 1");
  fields.Range("floor", &floor, 0, 1, "the share of the rates that is always left");
  // A recorded configuration has all keys, so those with their defaults must be right.
  PlateauConfig unset;
  unset.patience = patience;
  // This is what runs record that have none.
  for (const OutputKind kind : {OutputKind::kProbability, OutputKind::kNumber})
    if (metric == DefaultMetric(kind)) unset.metric = metric;
  fields.Require(
      patience > 0 || *this == unset, "patience",
      "is 0, with which the other keys of plateau do nothing: set it, or leave them out");
}

void ScheduleConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Choice("type", &type, {"polynomial", "cosine", "one_cycle"},
                "how rates decay; one_cycle: they rise first, as PyTorch's OneCycleLR");
  fields.Range("warmup_steps", &warmup_steps, 0, kMaxSteps, "linear from 0");
  fields.Range("decay_start_step", &decay_start_step, 0, kMaxSteps);
  fields.Range("decay_steps", &decay_steps, -1, kMaxSteps,
               "until decay_floor, or of the cycle; -1: until the end of the run; 0: no decay");
  fields.Range("decay_power", &decay_power, 0.1, 10, "polynomial");
  fields.Range("decay_floor", &decay_floor, 0, 1, "what is left of the rates after the decay");
  fields.Range("rise_share", &rise_share, 0, 1, "one_cycle: of its steps, those that raise rates");
  fields.Range("start_divisor", &start_divisor, 1, 1e9, "one_cycle begins with rates / this");
  fields.Range("end_divisor", &end_divisor, 1, 1e9, "one_cycle ends with rates / both divisors");
  fields.Choice("curve", &curve, {"cosine", "linear"}, "one_cycle: between these rates");
  fields.Section("plateau", &plateau, "multiplies the rates, too, where evaluations stay as good");
  fields.Require(type == "polynomial" || decay_steps != 0, "type",
                 fmt::format("is {}, which needs decay_steps: their number, or -1 for all steps of "
                             "the run",
                             type));
  if (type != "one_cycle") return;
  const std::string alone = "must be 0 with type: one_cycle, which says all rates";
  fields.Require(warmup_steps == 0, "warmup_steps", alone);
  fields.Require(decay_start_step == 0, "decay_start_step", alone);
  fields.Require(decay_floor == 0, "decay_floor", alone);
}

void BlockRateConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Range("learning_rate_factor", &learning_rate_factor, 0, 1e6,
               "multiplies optimizer.dense.learning_rate; 0: parameters keep their values");
  fields.Field("frozen", &frozen, "parameters and their states never change");
}

void OptimizerConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Section("dense", &dense, "of the MLPs and the cross network");
  fields.Section("sparse", &sparse,
                 "of the embedding tables; updates are deduplicated and deterministic");
  fields.Section("schedule", &schedule, "multiplies both learning rates");
  fields.Map("blocks", &blocks, "settings of single blocks of the model, by their names");
  for (const auto& [name, block] : blocks)
    fields.Require(dense.learning_rate * block.learning_rate_factor * dense.weight_decay < 1,
                   "blocks",
                   fmt::format("has learning_rate_factor {} for {}: times dense.learning_rate and "
                               "dense.weight_decay it must be below 1, or a step would flip the "
                               "sign of weights",
                               block.learning_rate_factor, name));
  fields.Range("max_gradient_norm", &max_gradient_norm, 0, 1e30,
               "clip the norm of dense and embedding gradients together; 0: never");
  // Weights follow from sums over all steps and the last rate: one that decays would shrink them.
  fields.Require(
      sparse.type != "ftrl" || (schedule.warmup_steps == 0 && schedule.decay_steps == 0 &&
                                !schedule.watches_evaluations()),
      "sparse", "has type ftrl, whose learning rate is constant: leave out schedule");
}

}  // namespace renzan
