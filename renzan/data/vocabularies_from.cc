#include "renzan/data/vocabularies_from.h"

#include <map>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dense_transform.h"
#include "renzan/data/text/label_rule.h"

namespace renzan {
namespace {

constexpr char kSameFeatures[] =
    "use the schema of that import, and add the columns that the file lacks, with empty fields";

// A test set must be preprocessed like the dataset whose vocabularies it uses.
void CheckPreprocessing(const std::string& directory, const DatasetManifest& manifest,
                        const DatasetSchema& schema) {
  if (manifest.dense_transforms.empty() && !schema.dense.empty())
    LogWarning(
        "cannot check that dense features have the same transforms as in {}: it does not record "
        "them; import it again",
        directory);
  for (size_t d = 0; d < schema.dense.size(); ++d) {
    const std::string here = DenseTransform::ParseKnown(schema.dense_transforms[d]).kind();
    const std::string there = manifest.dense_transforms.empty()
                                  ? "none"
                                  : DenseTransform::ParseKnown(manifest.dense_transforms[d]).kind();
    const bool known = !manifest.dense_transforms.empty();
    if (here != there && (known || DenseTransform::ParseKnown(here).needs_constants()))
      Fail(ErrorCode::kConfig,
           "dense feature '{}' was imported into {} with transform {}, here it is {}: use the same "
           "(--dense, or 'transform', 'clip' and 'fill' in the schema)",
           schema.dense[d], directory, there, here);
  }
  const std::string column = DifferentlyParsed(manifest.parsing, schema.parsing);
  if (!column.empty())
    Fail(
        ErrorCode::kConfig,
        "column '{}' was read into {} as {}, here it is read as {}, so that the same text could "
        "mean something else here, whether or not it occurs there: use the same trim, missing, "
        "separator, brackets, keep and buckets in the schema, or import {} again with this schema, "
        "too",
        Escape(column), directory, Escape(manifest.parsing.at(column)),
        Escape(schema.parsing.at(column)), directory);
  if (manifest.parsing.empty() && !manifest.dense_transforms.empty())
    LogWarning(
        "cannot check that columns are read (trim, missing, separator) as in {}: it does not "
        "record it; import it again",
        directory);
  if (!schema.has_labels() || manifest.label.empty()) return;
  const DatasetSchema there_schema = manifest.schema();
  if (!schema.further_labels.empty() || !there_schema.further_labels.empty()) {
    const auto rules_of = [](const DatasetSchema& of) {
      std::map<std::string, std::string> further;
      for (const DatasetLabel& label : of.further_labels) further[label.name] = label.rule;
      return RecordedLabelRules(of.label, of.label_rule, further, of.parsing);
    };
    const std::map<std::string, std::string> rules = rules_of(there_schema);
    for (const auto& [name, rule] : rules_of(schema))
      if (const auto found = rules.find(name); found != rules.end() && found->second != rule)
        Fail(ErrorCode::kConfig,
             "the label '{}' of {} was mapped by '{}', here it is by '{}': use the same in the "
             "schema",
             Escape(name), directory, found->second, rule);
    return;
  }
  const std::string there = RecordedLabelRule(manifest.label_rule, manifest.parsing),
                    here = RecordedLabelRule(schema.label_rule, schema.parsing);
  const bool may_agree = schema.label_rule != kNumberRule;  // which is always recorded
  if (there.empty() && !schema.label_rule.empty() && may_agree)
    LogWarning(
        "cannot check that labels mean the same as in {}: it does not record their rule; import it "
        "again",
        directory);
  else if (there != here && (!there.empty() || !may_agree))
    Fail(ErrorCode::kConfig,
         "the labels of {} were mapped by '{}', here they are by '{}': use the same in the schema",
         directory, there, here);
}

// The names of all their numbers would say less.
void CheckVectors(const std::string& directory, const DatasetManifest& manifest,
                  const DatasetSchema& schema) {
  for (const DenseVector& vector : schema.vectors) {
    const auto there = manifest.vectors.find(vector.name);
    if (there == manifest.vectors.end() || there->second.dimension == vector.dimension) continue;
    Fail(ErrorCode::kConfig,
         "vector '{}' has dimension {} in {}, here it has {}: use the vectors and the schema of "
         "that "
         "import",
         Escape(vector.name), there->second.dimension, directory, vector.dimension);
  }
}

}  // namespace

std::vector<Vocabulary> TakeVocabularies(const ImportOptions& options,
                                         DatasetSchema* schema_of_input) {
  const DatasetSchema& schema = *schema_of_input;
  const std::string& directory = options.vocabulary_from;
  if (!options.vocabulary.empty())
    Fail(ErrorCode::kUsage, "--vocabulary and --vocabulary-from cannot be combined");
  if (!options.grow && (!options.unseen.empty() || (options.seed && !options.keep_negatives)))
    Fail(ErrorCode::kUsage,
         "--{} and --vocabulary-from cannot be combined without --grow: only training rows train "
         "the row for unseen values",
         options.unseen.empty() ? "seed" : "unseen");
  const DatasetManifest manifest = ReadManifest(directory);
  CheckVectors(directory, manifest, schema);
  if (manifest.dense != schema.dense)
    Fail(ErrorCode::kConfig, "the dense features [{}] are not those of {}: [{}]; {}",
         fmt::join(schema.dense, ", "), directory, fmt::join(manifest.dense, ", "), kSameFeatures);
  CheckPreprocessing(directory, manifest, schema);
  std::vector<std::string> names;
  for (const CategoricalFeature& feature : schema.categorical) names.push_back(feature.name);
  if (manifest.categorical != names)
    Fail(ErrorCode::kConfig, "the categorical features [{}] are not those of {}: [{}]; {}",
         fmt::join(names, ", "), directory, fmt::join(manifest.categorical, ", "), kSameFeatures);
  std::vector<Vocabulary> vocabularies;
  for (const CategoricalFeature& feature : schema.categorical) {
    if (manifest.features.at(feature.name).multi_hot != feature.multi_hot)
      Fail(ErrorCode::kConfig, "feature '{}' is {} in {}, here it is {}: give it the same role",
           feature.name, feature.multi_hot ? "categorical" : "multi_hot", directory,
           feature.multi_hot ? "multi_hot" : "categorical");
    const FeatureEntry& there = manifest.features.at(feature.name);
    if (there.table != feature.table || there.max_length != feature.max_length)
      Fail(ErrorCode::kConfig,
           "feature '{}' has table '{}' and max_length {} in {}, here it has '{}' and {}: use the "
           "same schema",
           feature.name, there.table_name(feature.name), there.max_length, directory,
           feature.table_name(), feature.max_length);
    if (there.weights.name != feature.weights)
      Fail(ErrorCode::kConfig,
           "the weights of feature '{}' are '{}' in {}, here they are '{}' ('': it has none): use "
           "the same schema",
           feature.name, there.weights.name, directory, feature.weights);
    // Features that share a table look up the vocabulary of the first of them, which is read once.
    if (FirstOfTable(schema, vocabularies.size()) < vocabularies.size()) {
      vocabularies.emplace_back(there.vocabulary);
      continue;
    }
    vocabularies.push_back(Vocabulary::FromDataset(directory, manifest, feature.name));
    if (options.grow) vocabularies.back().Grow();
  }
  if (!manifest.dense_transforms.empty())
    schema_of_input->dense_transforms = manifest.dense_transforms;
  return vocabularies;
}

}  // namespace renzan
