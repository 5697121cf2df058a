#include "renzan/data/row_origins.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

// "hash", "threshold" or "ids".
std::string KindOf(const std::string& vocabulary) {
  return vocabulary.substr(0, vocabulary.find(':'));
}

std::vector<std::string> ReadEarlierValues(const std::string& directory, const std::string& feature,
                                           const EarlierTable& earlier) {
  const auto advise = [&](const std::string& why) {
    return fmt::format(
        "{}: feature '{}': the vocabulary that the rows were trained with is not the beginning of "
        "this one, and {}: import this data with --grow and --vocabulary-from the earlier dataset, "
        "or restore that",
        directory, Escape(feature), why);
  };
  try {
    const DatasetManifest manifest = ReadManifest(earlier.dataset);
    if (manifest.features.contains(feature) &&
        manifest.VocabularyIdentity(feature) == earlier.vocabulary)
      return ReadVocabularyValues(earlier.dataset, manifest, feature);
  } catch (const Error& error) {
    Fail(error.code(), "{}",
         advise(
             fmt::format("{} with its values cannot be read ({})", earlier.dataset, error.what())));
  }
  Fail(ErrorCode::kConfig, "{}",
       advise(fmt::format("{}, which had its values, has others now", earlier.dataset)));
}

// Of the values of two vocabularies.
RowOrigins MapValues(const std::vector<std::string>& values,
                     const std::vector<std::string>& earlier) {
  const auto row_of = [](size_t value) {
    return static_cast<int32_t>(Vocabulary::kFirstOwn) + static_cast<int32_t>(value);
  };
  std::unordered_map<std::string_view, int32_t> rows;
  rows.reserve(earlier.size());
  for (size_t i = 0; i < earlier.size(); ++i) rows.emplace(earlier[i], row_of(i));
  const auto differ = std::mismatch(values.begin(), values.end(), earlier.begin(), earlier.end());
  const size_t same = static_cast<size_t>(differ.first - values.begin());
  RowOrigins origins{.rows = row_of(values.size()),
                     .earlier_rows = row_of(earlier.size()),
                     .same = row_of(same),
                     .others = {}};
  for (size_t i = same; i < values.size(); ++i) {
    const auto found = rows.find(values[i]);
    origins.others.push_back(found == rows.end() ? -1 : found->second);
  }
  return origins;
}

}  // namespace

int64_t RowOrigins::taken() const {
  return same + std::count_if(others.begin(), others.end(), [](int32_t row) { return row >= 0; });
}

RowOrigins OriginsOfRows(const std::string& directory, const DatasetManifest& manifest,
                         const std::string& feature, const EarlierTable& earlier) {
  const int64_t rows = manifest.features.at(feature).num_embeddings;
  const std::string vocabulary = manifest.VocabularyIdentity(feature);
  const std::string kind = KindOf(vocabulary);
  RowOrigins origins{.rows = rows,
                     .earlier_rows = earlier.num_embeddings,
                     .same = std::min(rows, earlier.num_embeddings),
                     .others = {}};
  // With an equal vocabulary, or ids as input, a row's number stands for the same value.
  if (vocabulary == earlier.vocabulary) return origins;
  if (kind != KindOf(earlier.vocabulary) || kind != "threshold")
    Fail(ErrorCode::kConfig,
         "{}: feature '{}' has the vocabulary {}, but its rows were trained with {}, and rows can "
         "follow values only between vocabularies of values (threshold:K) or equal ones: import it "
         "with --vocabulary-from the earlier dataset",
         directory, Escape(feature), vocabulary, earlier.vocabulary);
  if (VocabularyBeginsWith(directory, manifest, feature, earlier.vocabulary,
                           earlier.num_embeddings))
    return origins;
  return MapValues(ReadVocabularyValues(directory, manifest, feature),
                   ReadEarlierValues(directory, feature, earlier));
}

}  // namespace renzan
