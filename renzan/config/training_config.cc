#include "renzan/config/training_config.h"

#include "renzan/config/decides.h"
#include "renzan/config/rules.h"
#include "renzan/model/output_metric.h"

namespace renzan {

void EarlyStoppingConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kRun);
  fields.Choice("metric", &metric, ComparedMetricChoices(),
                "on data.eval, by its weights if it has any; keep_best uses it, too. hr, ndcg and "
                "mrr are those of training.ranking, at its first rank, group_auc that of "
                "training.group_by; empty: log_loss, or rmse of numbers");
  fields.Field("output", &output,
               "whose metric, if several outputs have labels; plateaus use it, too");
  fields.Range("patience", &patience, 0, 1000000,
               "stop after this many evaluations without improvement; 0: never");
  fields.Range("min_delta", &min_delta, 0, 1e6, "a smaller improvement does not count");
}

void LossConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Range("pos_weight", &pos_weight, 0, 1e6,
               "multiplies the loss of positives, and so the odds that are learned");
  fields.Require(pos_weight > 0, "pos_weight", "must be greater than 0");
  fields.Range("label_smoothing", &label_smoothing, 0, 1,
               "e: labels become 1 - e / 2 and e / 2 in the loss");
  fields.Require(label_smoothing < 1, "label_smoothing",
                 "must be below 1, at which all labels are 0.5");
}

void TrainingConfig::Describe(ConfigFields& fields) {
  fields.Tag(Decides::kModel);
  fields.Field("initialize_from", &initialize_from,
               "a run, model or checkpoint whose model a new run starts from; empty: drawn");
  fields.Field("initialize_partly", &initialize_partly,
               "initialize_from may be another model: what both have is taken, by name and shape, "
               "and the rest begins as initialised");
  fields.Tag(Decides::kArithmetic);
  fields.Range("batch_size", &batch_size, 1, 1 << 24,
               "samples per step over all workers, a multiple of numerics.virtual_workers");
  fields.Section("loss", &loss, "settings of binary_cross_entropy; metrics do not use them");
  fields.Tag(Decides::kRun);
  fields.Range("epochs", &epochs, 0, 1e6);
  fields.Range("max_steps", &max_steps, -1, kMaxSteps, "-1: no limit");
  fields.Range("log_every", &log_every, 1, kMaxSteps, "steps");
  fields.Range("eval_every", &eval_every, 0, kMaxSteps, "steps; 0: at the end only");
  fields.Range("eval_every_epochs", &eval_every_epochs, 0, 1e6,
               "instead of eval_every: in epochs, which may be a fraction");
  fields.Require(eval_every == 0 || eval_every_epochs == 0, "eval_every_epochs",
                 "and eval_every are both set: choose one");
  fields.Field("ranking", &ranking,
               "evaluations also rank the items of data.eval among all items of data.train and "
               "data.eval, for HR and NDCG at these ranks: [10, 20]; for models that match a query "
               "and an item");
  for (const int64_t k : ranking) fields.Require(k >= 1, "ranking", "must have ranks from 1 on");
  fields.Field(
      "group_by", &group_by,
      "a key, or a categorical feature with one value a row, such as the user: evaluations "
      "also report group_auc, the mean of the AUCs of its values' rows, weighted by their "
      "number");
  fields.Section("early_stopping", &early_stopping);
  fields.Field("keep_best", &keep_best,
               "save the model of the best evaluation instead of the last step's");
  fields.Require(
      !watches_evaluations() || !IsRankingMetric(early_stopping.metric) || !ranking.empty(),
      "early_stopping",
      fmt::format("has metric {}, which needs training.ranking: [10], or another rank",
                  early_stopping.metric));
  fields.Require(!watches_evaluations() || NeedsOf(early_stopping.metric) != Needs::kGroups ||
                     !group_by.empty(),
                 "early_stopping", "has metric group_auc, which needs training.group_by: COLUMN");
}

}  // namespace renzan
