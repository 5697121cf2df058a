#include "renzan/config/config_difference.h"

#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/same_path.h"

namespace renzan {
namespace {

bool DecidesBits(Decides decides) {
  return decides == Decides::kModel || decides == Decides::kArithmetic;
}

template <typename Value>
void DropUnlessBothKnown(Value* a, Value* b) {
  if (!a->empty() && !b->empty()) return;
  a->clear();
  b->clear();
}

// Gives both configurations the same tables: a table that is not named has the model's settings.
void NameTablesOf(const TrainConfig& other, TrainConfig* config) {
  for (const auto& [name, table] : other.model.tables) config->model.tables.try_emplace(name);
  for (auto& [name, table] : config->model.tables) FillFromModel(config->model, &table);
}

// Likewise for blocks.
void NameBlocksOf(const TrainConfig& other, TrainConfig* config) {
  for (const auto& [name, block] : other.optimizer.blocks)
    config->optimizer.blocks.try_emplace(name);
}

// Gives equal places the same spelling.
void SpellPathsLike(const TrainConfig& other, TrainConfig* config) {
  const auto spell_like = [](const std::string& there, std::string* path) {
    if (IsSamePath(there, *path)) *path = there;
  };
  spell_like(other.training.initialize_from, &config->training.initialize_from);
  spell_like(other.data.train.path, &config->data.train.path);
  spell_like(other.data.eval.path, &config->data.eval.path);
  spell_like(other.sharding.plan, &config->sharding.plan);
}

std::vector<ConfigValue> ValuesOf(TrainConfig& config) {
  return ListConfig([&](ConfigFields& fields) { config.Describe(fields); });
}

// The printed value at `path`, or "unset".
std::string TextAt(const std::vector<ConfigValue>& values, const std::vector<std::string>& path) {
  for (const ConfigValue& value : values)
    if (value.path == path) return value.text;
  return "unset";
}

// The first value that differs, of those for which matters(value) returns true.
template <typename Matters>
std::optional<ConfigDifference> FirstOf(TrainConfig& there, TrainConfig& here,
                                        const Matters& matters) {
  SpellPathsLike(there, &here);
  const std::vector<ConfigValue> a = ValuesOf(there), b = ValuesOf(here);
  for (const auto* values : {&a, &b}) {
    for (const ConfigValue& value : *values) {
      if (!matters(value)) continue;
      std::string x = TextAt(a, value.path), y = TextAt(b, value.path);
      if (x != y) return ConfigDifference{value.key(), std::move(x), std::move(y)};
    }
  }
  return std::nullopt;
}

// Keys that set the number of steps, besides the data and the batch size.
bool IsLength(const std::string& key) {
  return key == "training.epochs" || key == "training.max_steps";
}

// Keys that set when the model is evaluated, and what of it is compared.
bool IsAboutEvaluations(const std::string& key) {
  return key == "training.eval_every" || key == "training.eval_every_epochs" ||
         key == "training.early_stopping.output" || key == "training.ranking" ||
         key == "training.group_by";
}

// What a difference of a key means where the schedule makes it one.
std::string WhyItCounts(const std::string& key) {
  if (IsLength(key))
    return " (the learning rates decay until the end of the run, because "
           "optimizer.schedule.decay_steps is -1)";
  if (IsAboutEvaluations(key))
    return " (evaluations change the learning rates, because of optimizer.schedule.plateau)";
  return "";
}

}  // namespace

bool WorkersMustAgree(Decides decides) { return decides != Decides::kPlacement; }

bool MayChangeAfterTraining(Decides decides) {
  return decides == Decides::kArithmetic || decides == Decides::kClass;
}

std::optional<ConfigDifference> FirstDifference(TrainConfig there, TrainConfig here,
                                                bool (*matters)(Decides)) {
  return FirstOf(there, here, [&](const ConfigValue& value) {
    return matters(static_cast<Decides>(value.tag));
  });
}

std::string DifferenceThatChangesBits(TrainConfig there, TrainConfig here) {
  NameTablesOf(here, &there);
  NameTablesOf(there, &here);
  NameBlocksOf(here, &there);
  NameBlocksOf(there, &here);
  // Older versions did not record these.
  DropUnlessBothKnown(&there.features.dense_transforms, &here.features.dense_transforms);
  DropUnlessBothKnown(&there.features.vocabularies, &here.features.vocabularies);
  DropUnlessBothKnown(&there.features.label, &here.features.label);
  DropUnlessBothKnown(&there.features.label_rule, &here.features.label_rule);
  DropUnlessBothKnown(&there.features.parsing, &here.features.parsing);
  const bool length_counts =
      there.optimizer.schedule.ends_with_run() && here.optimizer.schedule.ends_with_run();
  const bool evaluations_count = there.optimizer.schedule.watches_evaluations() &&
                                 here.optimizer.schedule.watches_evaluations();
  const auto difference = FirstOf(there, here, [&](const ConfigValue& value) {
    return DecidesBits(static_cast<Decides>(value.tag)) ||
           (length_counts && IsLength(value.key())) ||
           (evaluations_count && IsAboutEvaluations(value.key()));
  });
  if (!difference) return "";
  return fmt::format("{} is {} there and {} here{}", difference->key, difference->there,
                     difference->here, WhyItCounts(difference->key));
}

}  // namespace renzan
