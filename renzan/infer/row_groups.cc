#include "renzan/infer/row_groups.h"

#include <algorithm>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/escape.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

bool IsIn(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// By what rows can be grouped.
struct GroupColumns {
  std::vector<std::string> features, keys;

  explicit GroupColumns(const Dataset& dataset) : keys(dataset.manifest().keys) {
    for (const CategoricalFeature& feature : dataset.schema().categorical)
      if (!feature.multi_hot && !IsIn(keys, feature.name)) features.push_back(feature.name);
  }
  bool empty() const { return features.empty() && keys.empty(); }
  std::vector<std::string> all() const {
    std::vector<std::string> names = features;
    names.insert(names.end(), keys.begin(), keys.end());
    return names;
  }
  // "a one-hot feature: C1, C2, or a key: user"
  std::string Text() const {
    std::string text;
    if (!features.empty()) text = fmt::format("a one-hot feature: {}", fmt::join(features, ", "));
    if (!features.empty() && !keys.empty()) text += ", or ";
    if (!keys.empty()) text += fmt::format("a key: {}", fmt::join(keys, ", "));
    return text;
  }
};

// Why rows cannot be grouped by a column of this name.
std::string WhyNotGroupedBy(const std::string& name, const Dataset& dataset,
                            const GroupColumns& columns, const Dataset* training) {
  const DatasetSchema& schema = dataset.schema();
  for (const CategoricalFeature& feature : schema.categorical)
    if (feature.name == name) return "a row may have several ids of this feature";
  for (const DenseVector& vector : schema.vectors)
    if (vector.name == name) return "this is a vector of dense features";
  if (IsIn(schema.dense, name)) return "this is a dense feature";
  if (IsIn(schema.label_names(), name)) return "this is a label";
  if (name == schema.weight) return "this is the weight";
  if (training != nullptr && IsIn(training->manifest().keys, name))
    return fmt::format("this is a key of {}, but not of {}: import it with the same schema",
                       training->directory(), dataset.directory());
  const std::string nearest = NearestName(name, columns.all());
  return fmt::format("{} has no such column{}", dataset.directory(),
                     nearest.empty() ? "" : " (did you mean '" + nearest + "'?)");
}

}  // namespace

void CheckCanGroup(const std::string& name, const Dataset& dataset, const GroupRequest& request) {
  const GroupColumns columns(dataset);
  if (IsIn(columns.keys, name) || IsIn(columns.features, name)) return;
  const std::string why = WhyNotGroupedBy(name, dataset, columns, request.training);
  if (columns.empty())
    Fail(request.code, "{} {}: {}, and {} has no one-hot feature and no key", request.key,
         Escape(name), why, dataset.directory());
  Fail(request.code, "{} {}: {}; choose {}", request.key, Escape(name), why, columns.Text());
}

RowGroups::RowGroups(const std::string& name, const Dataset& dataset, RowRange rows,
                     const GroupRequest& request)
    : meaning_(name) {
  CheckCanGroup(name, dataset, request);
  if (IsIn(dataset.manifest().keys, name)) {
    key_.emplace(dataset, name, rows.begin, rows.end);
    // Keys are no part of a dataset's fingerprint.
    meaning_ = fmt::format("the key {} {}", name, KeyFingerprint(dataset, name));
    return;
  }
  const std::vector<CategoricalFeature>& features = dataset.schema().categorical;
  while (features[feature_].name != name) ++feature_;
  if (HasUnseenRow(features[feature_].vocabulary)) unseen_ = Vocabulary::kRare;
}

std::span<const int64_t> RowGroups::Of(int64_t first, int64_t count, const Batch& batch) const {
  if (key_) return key_->Of(first, count);
  return std::span(batch.categorical[feature_].values).first(static_cast<size_t>(count));
}

std::string UnseenGroupAdvice(const std::string& name, const Dataset& dataset, int64_t unseen,
                              int64_t rows) {
  if (unseen * 2 <= rows) return "";
  return fmt::format(
      "{:.3g} % of {} that are grouped by '{}' have values that its vocabulary lacks, which are "
      "one group: to group them by their texts, import {} with `key: true` for '{}' in the schema",
      100 * static_cast<double>(unseen) / static_cast<double>(rows), Counted(rows, "row"),
      Escape(name), dataset.directory(), Escape(name));
}

}  // namespace renzan
