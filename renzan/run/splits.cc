#include "renzan/run/splits.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/file/same_path.h"
#include "renzan/base/log.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/known_ids.h"
#include "renzan/data/text/label_rule.h"
#include "renzan/data/vocabulary.h"
#include "renzan/run/agreement.h"

namespace renzan {
namespace {

// How the features' names in other data differ from the training data's, or "".
std::string DifferenceOfNames(const char* kind, const std::vector<std::string>& there,
                              const std::vector<std::string>& here) {
  // There may be tens of thousands.
  const auto first_without = [](const auto& names, const auto& others) {
    const std::set<std::string_view> known(others.begin(), others.end());
    return std::find_if(names.begin(), names.end(),
                        [&](const std::string& name) { return !known.contains(name); });
  };
  if (const auto lacks = first_without(there, here); lacks != there.end())
    return fmt::format("the training data has the {} feature '{}', this dataset does not", kind,
                       Escape(*lacks));
  if (const auto extra = first_without(here, there); extra != here.end())
    return fmt::format("it has the {} feature '{}', which the training data does not", kind,
                       Escape(*extra));
  if (here.size() != there.size())
    return fmt::format("it has {}, the training data {}",
                       Counted(std::ssize(here), fmt::format("{} feature", kind)), there.size());
  for (size_t i = 0; i < here.size(); ++i)
    if (here[i] != there[i])
      return fmt::format("the {} feature '{}' is where the training data has '{}'", kind,
                         Escape(here[i]), Escape(there[i]));
  return "";
}

// These features of `all`, in this order.
FeaturesConfig OnlyFeatures(const FeaturesConfig& all, const std::vector<std::string>& dense,
                            const std::vector<std::string>& categorical) {
  FeaturesConfig only = all;
  only.dense = dense;
  only.categorical = categorical;
  // What `list` says of the features `names`, for `of` in their order.
  const auto pick = [](const auto& names, const auto& list, const auto& of) {
    std::map<std::string_view, size_t> places;
    for (size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
    std::decay_t<decltype(list)> picked;
    if (!list.empty())
      for (const std::string& name : of) picked.push_back(list[places.at(name)]);
    return picked;
  };
  only.dense_transforms = pick(all.dense, all.dense_transforms, dense);
  only.num_embeddings = pick(all.categorical, all.num_embeddings, categorical);
  only.vocabularies = pick(all.categorical, all.vocabularies, categorical);
  only.tables = pick(all.categorical, all.table_names(), categorical);
  only.max_lengths =
      pick(all.categorical,
           all.max_lengths.empty() ? std::vector<int64_t>(all.categorical.size()) : all.max_lengths,
           categorical);
  only.weights = pick(all.categorical, all.weights, categorical);
  const std::set<std::string_view> multi_hot(all.multi_hot.begin(), all.multi_hot.end());
  only.multi_hot.clear();
  for (const std::string& name : categorical)
    if (multi_hot.contains(name)) only.multi_hot.push_back(name);
  return only;
}

// Leaves the features that both have, in the order of `b`.
void LeaveCommon(FeaturesConfig* a, FeaturesConfig* b) {
  const auto common = [](const auto& names, const auto& others) {
    const std::set<std::string_view> known(others.begin(), others.end());
    std::vector<std::string> both;
    for (const std::string& name : names)
      if (known.contains(name)) both.push_back(name);
    return both;
  };
  const auto dense = common(b->dense, a->dense),
             categorical = common(b->categorical, a->categorical);
  *a = OnlyFeatures(*a, dense, categorical);
  *b = OnlyFeatures(*b, dense, categorical);
}

// `actual`: the columns of the dataset. Vocabularies that continue the expected ones become those,
// as which they are read through KnownIds. Returns whether any did.
bool ShortenVocabularies(const FeaturesConfig& expected, const Dataset& dataset,
                         FeaturesConfig* actual) {
  bool any = false;
  for (size_t f = 0; f < expected.vocabularies.size(); ++f) {
    if (actual->num_embeddings[f] <= expected.num_embeddings[f] ||
        !VocabularyBeginsWith(dataset.directory(), dataset.manifest(), expected.categorical[f],
                              expected.vocabularies[f], expected.num_embeddings[f]))
      continue;
    actual->num_embeddings[f] = expected.num_embeddings[f];
    actual->vocabularies[f] = expected.vocabularies[f];
    any = true;
  }
  return any;
}

// Nobody knows any more which values of the model's vocabulary have ids of unseen ones.
void CheckTrainsNoUnseen(const Dataset& dataset) {
  const DatasetManifest& manifest = dataset.manifest();
  for (const std::string& name : manifest.categorical)
    if (manifest.may_train_unseen(name))
      Fail(ErrorCode::kConfig,
           "{}: its vocabularies continue those of the training data, but it is training data "
           "itself (or an earlier version does not say), where a share of {} of the lookups of "
           "'{}' read the row for unseen values instead of their own: import it again with "
           "--vocabulary-from {} and without --grow, for all models whose vocabulary it continues",
           dataset.directory(), manifest.features.at(name).unseen, Escape(name),
           dataset.directory());
}

std::unique_ptr<Dataset> Open(const std::string& path, const DataConfig& config,
                              Communicator& comm) {
  std::unique_ptr<Dataset> dataset = OpenDataset(
      path, {.verify_blocks = config.verify_blocks, .cache = config.cache.options()}, comm);
  // Every host may have its own copy, so each worker verifies.
  if (config.verify) RunWithHeartbeats(comm, [&] { dataset->Verify(); });
  return dataset;
}

Batch ReadFirstRows(const Split& split) {
  constexpr int64_t kSample = 1024;
  std::vector<int64_t> rows(static_cast<size_t>(std::min(kSample, split.rows.size())));
  std::iota(rows.begin(), rows.end(), split.rows.begin);
  Batch batch;
  split.dataset->Read(rows, &batch);
  return batch;
}

}  // namespace

std::string WeightOfEvaluations(const OpenedSplits& splits) {
  return splits.eval ? splits.eval->dataset->schema().weight : "";
}

std::unique_ptr<Dataset> OpenDataset(const std::string& path, DatasetOptions options,
                                     Communicator& comm) {
  options.warn = comm.rank() == 0;
  std::unique_ptr<Dataset> dataset;
  RunWithHeartbeats(comm, [&] { dataset = std::make_unique<Dataset>(path, options); });
  CheckWorkersAgree(comm, "content in " + path, dataset->fingerprint().substr(0, 12),
                    "give every worker the same dataset");
  return dataset;
}

RowRange ResolveRows(const std::vector<int64_t>& rows, const Dataset& dataset, const char* key,
                     ErrorCode code) {
  if (rows.empty()) return {0, dataset.num_rows()};
  if (rows.size() != 2 || rows[0] < 0 || rows[0] >= rows[1])
    Fail(code, "{}: must be BEGIN END with 0 <= BEGIN < END", key);
  if (rows[1] > dataset.num_rows())
    Fail(code, "{}: rows end at {}, but {} has only {}", key, rows[1], dataset.directory(),
         Counted(dataset.num_rows(), "row"));
  return {rows[0], rows[1]};
}

FeaturesConfig FeaturesOf(const DatasetSchema& schema) {
  FeaturesConfig features{.dense = schema.dense,
                          .dense_transforms = schema.dense_transforms,
                          .label = schema.label,
                          .label_rule = schema.label_rule,
                          .parsing = schema.parsing,
                          .negatives_kept = schema.negatives_kept};
  for (const DatasetLabel& label : schema.further_labels)
    features.further_label_rules[label.name] = label.rule;
  for (const CategoricalFeature& feature : schema.categorical) {
    features.categorical.push_back(feature.name);
    features.num_embeddings.push_back(feature.num_embeddings);
    features.vocabularies.push_back(feature.vocabulary);
    if (feature.multi_hot) features.multi_hot.push_back(feature.name);
    features.tables.push_back(feature.table_name());
    features.max_lengths.push_back(feature.max_length);
    features.weights.push_back(feature.weights);
  }
  if (features.tables == features.categorical) features.tables.clear();
  if (std::all_of(features.max_lengths.begin(), features.max_lengths.end(),
                  [](int64_t length) { return length == 0; }))
    features.max_lengths.clear();
  if (std::all_of(features.weights.begin(), features.weights.end(),
                  [](const std::string& weights) { return weights.empty(); }))
    features.weights.clear();
  return features;
}

void CheckFeatures(const ExpectedFeatures& expectation, const Dataset& dataset,
                   Communicator& comm) {
  FeaturesConfig expected = expectation.features;
  FeaturesConfig actual = FeaturesOf(dataset.schema());
  if (expectation.only_common) LeaveCommon(&expected, &actual);
  const bool any_ids = expectation.ids == ExpectedIds::kAny;
  const std::string from = fmt::format("{}--vocabulary-from {}", any_ids ? "--grow and " : "",
                                       expectation.vocabularies_from);
  const auto check_names = [&](const char* kind, const std::vector<std::string>& there,
                               const std::vector<std::string>& here) {
    const std::string problem = DifferenceOfNames(kind, there, here);
    if (!problem.empty())
      Fail(ErrorCode::kConfig, "{}: {}: import it with the same schema (and {})",
           dataset.directory(), problem, from);
  };
  const auto warn = [&](const std::string& what, bool here) {
    if (comm.rank() == 0)
      LogWarning("{}: cannot check that {} as in the training data: {} does not record it",
                 dataset.directory(), what, here ? "this dataset" : expectation.recorded_by);
  };
  const auto check_preprocessing = [&](const char* what, const std::vector<std::string>& names,
                                       auto FeaturesConfig::*list, const std::string& advice) {
    const auto &e = expected.*list, &a = actual.*list;
    if (!names.empty() && (e.empty() || a.empty()))
      return warn(fmt::format("the {} of columns is", what), a.empty());
    for (size_t i = 0; i < names.size(); ++i)
      if (e[i] != a[i])
        Fail(ErrorCode::kConfig,
             "{}: the {} of '{}' is {}, but that of the training data is {}: {}",
             dataset.directory(), what, names[i], a[i], e[i], advice);
  };
  check_names("dense", expected.dense, actual.dense);
  check_names("categorical", expected.categorical, actual.categorical);
  const bool shortened =
      expectation.ids == ExpectedIds::kContinued && ShortenVocabularies(expected, dataset, &actual);
  for (size_t i = 0; !any_ids && i < expected.categorical.size(); ++i)
    if (expected.num_embeddings[i] != actual.num_embeddings[i])
      Fail(ErrorCode::kConfig,
           "{}: feature '{}' has {}, but that of the training data has {}{}: import it with {}",
           dataset.directory(), Escape(actual.categorical[i]),
           Counted(actual.num_embeddings[i], "id"), expected.num_embeddings[i],
           expectation.ids == ExpectedIds::kContinued &&
                   actual.num_embeddings[i] > expected.num_embeddings[i]
               ? ", and its vocabulary does not continue that one"
               : "",
           from);
  check_names("multi-hot", expected.multi_hot, actual.multi_hot);
  const auto check_same = [&](const char* what, const auto& there, const auto& here) {
    if (there != here)
      Fail(ErrorCode::kConfig,
           "{}: the features have another {} than in the training data: import it with the same "
           "schema (and {})",
           dataset.directory(), what, from);
  };
  check_same("table", expected.tables, actual.tables);
  check_same("max_length", expected.max_lengths, actual.max_lengths);
  const auto weights_of = [](const FeaturesConfig& features, size_t f) {
    if (features.weights.empty() || features.weights[f].empty()) return std::string("none");
    return fmt::format("those of column '{}'", Escape(features.weights[f]));
  };
  for (size_t f = 0; f < actual.categorical.size(); ++f)
    if (weights_of(expected, f) != weights_of(actual, f))
      Fail(ErrorCode::kConfig,
           "{}: the weights of '{}' are {}, but in the training data {}: import it with the same "
           "schema (and {})",
           dataset.directory(), Escape(actual.categorical[f]), weights_of(actual, f),
           weights_of(expected, f), from);
  check_preprocessing(
      "transform", actual.dense, &FeaturesConfig::dense_transforms,
      fmt::format(
          "import it with the same 'transform', 'clip' and 'fill' in the schema (for format "
          "criteo: --dense), and {}",
          from));
  if (!any_ids)
    check_preprocessing("vocabulary", actual.categorical, &FeaturesConfig::vocabularies,
                        "import it with " + from);
  if (shortened) CheckTrainsNoUnseen(dataset);
  const std::string column = DifferentlyParsed(expected.parsing, actual.parsing);
  if (!column.empty())
    Fail(ErrorCode::kConfig,
         "{}: column '{}' was read as {}, but that of the training data as {}: import it with the "
         "same trim, missing, separator, brackets, keep and buckets in the schema",
         dataset.directory(), Escape(column), Escape(actual.parsing.at(column)),
         Escape(expected.parsing.at(column)));
  // A dataset without recorded transforms is even older; the warning above covers it.
  const bool same_age = expected.dense_transforms.empty() == actual.dense_transforms.empty();
  if (expected.parsing.empty() != actual.parsing.empty() && same_age)
    warn("columns were read (trim, missing, separator)", actual.parsing.empty());
  // Where there are several labels, each is compared with the one of its name.
  if (!expected.further_label_rules.empty() || !actual.further_label_rules.empty()) {
    const auto rules_of = [](const FeaturesConfig& features) {
      return RecordedLabelRules(features.label, features.label_rule, features.further_label_rules,
                                features.parsing);
    };
    const std::map<std::string, std::string> rules = rules_of(expected);
    for (const auto& [name, rule] : rules_of(actual))
      if (const auto found = rules.find(name); found != rules.end() && found->second != rule)
        Fail(ErrorCode::kConfig,
             "{}: its label '{}' was mapped by '{}', but that of the training data by '{}': import "
             "it with the same schema",
             dataset.directory(), Escape(name), rule, found->second);
    return;
  }
  if (!dataset.schema().has_labels() || expected.label_rule == actual.label_rule) return;
  const std::string there = RecordedLabelRule(expected.label_rule, expected.parsing),
                    here = RecordedLabelRule(actual.label_rule, actual.parsing);
  // The rule of numbers is always recorded.
  const bool any_number = there == kNumberRule || here == kNumberRule;
  if ((there.empty() || here.empty()) && !any_number)
    warn("labels mean the same", here.empty());
  else
    Fail(ErrorCode::kConfig,
         "{}: its labels were mapped by '{}', but those of the training data by '{}': import it "
         "with the same schema",
         dataset.directory(), here, there);
}

void CheckHasLabels(const Dataset& dataset) {
  if (!dataset.schema().has_labels())
    Fail(ErrorCode::kConfig,
         "{} has no labels, so it is for `renzan predict` only: import data with the label's "
         "column",
         dataset.directory());
}

OpenedSplits OpenSplits(const DataConfig& config, const FeaturesConfig& features,
                        Communicator& comm) {
  OpenedSplits splits;
  splits.train_dataset = Open(config.train.path, config, comm);
  CheckHasLabels(*splits.train_dataset);
  splits.train = {splits.train_dataset.get(),
                  ResolveRows(config.train.rows, *splits.train_dataset, "data.train.rows")};
  if (!features.empty())
    CheckFeatures({features, "the configuration"}, *splits.train_dataset, comm);
  // Evaluated data may have another share, for which scores are then corrected.
  const double kept = splits.train_dataset->schema().negatives_kept;
  if (features.negatives_kept != 1 && features.negatives_kept != kept)
    Fail(ErrorCode::kConfig,
         "features.negatives_kept is {}, but {} records {}: give it when importing "
         "(negatives_kept in the schema, or --keep-negatives)",
         features.negatives_kept, config.train.path, kept);
  if (config.eval.path.empty()) return splits;
  const Dataset* eval = splits.train_dataset.get();
  if (!IsSamePath(config.eval.path, config.train.path)) {
    splits.eval_dataset = Open(config.eval.path, config, comm);
    CheckHasLabels(*splits.eval_dataset);
    CheckFeatures({.features = FeaturesOf(splits.train_dataset->schema()),
                   .recorded_by = config.train.path,
                   .vocabularies_from = config.train.path},
                  *splits.eval_dataset, comm);
    eval = splits.eval_dataset.get();
  }
  splits.eval = {eval, ResolveRows(config.eval.rows, *eval, "data.eval.rows")};
  const RowRange &t = splits.train.rows, &e = splits.eval->rows;
  if (comm.rank() == 0 && eval->fingerprint() == splits.train_dataset->fingerprint() &&
      t.begin < e.end && e.begin < t.end)
    LogWarning(
        "data.eval contains training rows, so its metrics do not predict quality on new data; give "
        "data.train.rows and data.eval.rows ranges that do not overlap");
  return splits;
}

std::string UnknownValuesAdvice(const Split& train) {
  const DatasetManifest& manifest = train.dataset->manifest();
  if (!manifest.vocabularies_reused) return "";
  const Batch batch = ReadFirstRows(train);
  double most = 0;
  std::string name;
  for (size_t f = 0; f < manifest.categorical.size(); ++f) {
    if (!HasUnseenRow(manifest.features.at(manifest.categorical[f]).vocabulary)) continue;
    const auto count = [ids = std::span(batch.categorical[f].values)](int64_t id) {
      return static_cast<double>(std::count(ids.begin(), ids.end(), id));
    };
    const double lookups =
        static_cast<double>(batch.categorical[f].values.size()) - count(Vocabulary::kMissing);
    const double share = count(Vocabulary::kRare) / std::max(lookups, 1.0);
    if (share <= most) continue;
    most = share;
    name = manifest.categorical[f];
  }
  constexpr double kMany = 0.1;
  if (most < kMany) return "";
  return fmt::format(
      "{}: {:.3g} % of the lookups of '{}' in its first {} are of values that the data of its "
      "--vocabulary-from lacks, and nothing is learned of each of them: import training data with "
      "--grow",
      train.dataset->directory(), 100 * most, Escape(name), Counted(batch.size, "row"));
}

std::vector<double> EstimatePoolingFactors(const Split& split) {
  const Batch batch = ReadFirstRows(split);
  std::vector<double> factors;
  for (const FeatureIds& feature : batch.categorical)
    factors.push_back(static_cast<double>(feature.values.size()) /
                      static_cast<double>(std::max<int64_t>(batch.size, 1)));
  return factors;
}

}  // namespace renzan
