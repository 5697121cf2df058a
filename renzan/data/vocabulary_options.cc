#include "renzan/data/vocabulary_options.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

// Whether an option holds several, divided by commas. Only a feature's name may have a comma.
bool IsList(std::string_view option, const std::vector<std::string>& names) {
  const size_t equals = option.rfind('=');
  if (equals == std::string_view::npos) return option.find(',') != std::string_view::npos;
  return option.find(',', equals) != std::string_view::npos ||
         (option.find(',') != std::string_view::npos &&
          std::find(names.begin(), names.end(), option.substr(0, equals)) == names.end());
}

std::string OneByOne(std::string_view list, std::string_view flag) {
  std::string text;
  for (const char c : list) text += c == ',' ? fmt::format(" {} ", flag) : std::string(1, c);
  return text;
}

// The values of an option that is given as VALUE for all features and FEATURE=VALUE for one.
struct FeatureOption {
  std::optional<std::string> for_all;
  std::vector<std::optional<std::string>> of_feature;  // of the first feature of each table

  FeatureOption(const char* flag, const std::vector<std::string>& given,
                const DatasetSchema& schema)
      : of_feature(schema.categorical.size()) {
    std::vector<std::string> names;
    for (const CategoricalFeature& feature : schema.categorical) names.push_back(feature.name);
    for (const std::string& option : given) {
      const size_t equals = option.rfind('=');
      if (IsList(option, names))
        Fail(ErrorCode::kUsage, "{} {}: repeat the flag for each of them: {} {}", flag, option,
             flag, OneByOne(option, flag));
      if (equals == std::string::npos) {
        for_all = option;
        continue;
      }
      const std::string name = option.substr(0, equals);
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) {
        const std::string nearest = NearestName(name, names);
        Fail(ErrorCode::kUsage, "{} {}: there is no categorical feature '{}'{}", flag, option, name,
             nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
      }
      const auto feature = static_cast<size_t>(found - names.begin());
      if (const size_t first = FirstOfTable(schema, feature); first != feature)
        Fail(ErrorCode::kUsage, "{} {}: '{}' shares the table and vocabulary of '{}': name that",
             flag, option, name, names[first]);
      of_feature[feature] = option.substr(equals + 1);
    }
  }
};

double ParseShare(const std::string& text) {
  const std::optional<double> share = ParseNumber(text);
  if (!share || !(*share >= 0 && *share < 1))
    Fail(ErrorCode::kUsage, "--unseen {}: must be a share of the lookups, from 0 to less than 1",
         text);
  return *share;
}

}  // namespace

std::vector<Vocabulary> VocabulariesFromOptions(const ImportOptions& options,
                                                const DatasetSchema& schema) {
  const FeatureOption specs("--vocabulary", options.vocabulary, schema);
  std::vector<Vocabulary> vocabularies;
  for (const std::optional<std::string>& spec : specs.of_feature)
    vocabularies.emplace_back(spec.value_or(specs.for_all.value_or(kDefaultVocabulary)));
  return vocabularies;
}

void TrainUnseenOfOptions(const ImportOptions& options, const DatasetSchema& schema,
                          const std::vector<double>& unseen_of_columns,
                          std::vector<Vocabulary>* vocabularies) {
  const FeatureOption unseen("--unseen", options.unseen, schema);
  bool applies_to_any = false;
  for (size_t f = 0; f < schema.categorical.size(); ++f) {
    const std::string& name = schema.categorical[f].name;
    Vocabulary& vocabulary = (*vocabularies)[f];
    if (const size_t first = FirstOfTable(schema, f); first != f) {
      if (f < unseen_of_columns.size() && !std::isnan(unseen_of_columns[f]))
        Fail(ErrorCode::kConfig,
             "feature '{}' shares the table and vocabulary of '{}': move 'unseen' to that column",
             name, schema.categorical[first].name);
      continue;
    }
    std::optional<double> share, of_feature;
    if (unseen.for_all) share = ParseShare(*unseen.for_all);
    if (f < unseen_of_columns.size() && !std::isnan(unseen_of_columns[f]))
      of_feature = unseen_of_columns[f];
    if (unseen.of_feature[f]) {
      if (of_feature)
        Fail(ErrorCode::kUsage,
             "--unseen {}={}: the schema has 'unseen' for this column too: give "
             "one of them",
             name, *unseen.of_feature[f]);
      of_feature = ParseShare(*unseen.of_feature[f]);
    }
    if (of_feature && !vocabulary.provisional())
      Fail(ErrorCode::kUsage,
           "feature '{}' is hashed ({}) and has no row for unseen values, so that 'unseen' has no "
           "effect: use --vocabulary {}=threshold:K",
           name, vocabulary.spec(), name);
    applies_to_any |= vocabulary.provisional();
    if (vocabulary.provisional())
      vocabulary.TrainUnseen(of_feature ? of_feature : share, options.seed.value_or(0), name);
  }
  if (unseen.for_all && !applies_to_any)
    Fail(ErrorCode::kUsage,
         "--unseen {}: no feature has a row for unseen values, because all of them are hashed: use "
         "--vocabulary threshold:K",
         *unseen.for_all);
}

}  // namespace renzan
