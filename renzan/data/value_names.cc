#include "renzan/data/value_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "renzan/base/utf8.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/vocabulary.h"

namespace renzan {

ValueNames::ValueNames(const Dataset& dataset, size_t feature) {
  const CategoricalFeature& of = dataset.schema().categorical[feature];
  const DatasetManifest& manifest = dataset.manifest();
  const std::string file = FeatureFile(manifest.VocabularyOwner(of.name), "offsets");
  kind_ = of.vocabulary == "ids"               ? Kind::kIds
          : manifest.vocabulary.contains(file) ? Kind::kNamed
                                               : Kind::kHashed;
  values_ = ReadVocabularyValues(dataset.directory(), manifest, of.name);
}

bool ValueNames::are_utf8() const { return std::all_of(values_.begin(), values_.end(), IsUtf8); }

std::optional<std::string> ValueNames::Value(int64_t id) const {
  if (kind_ == Kind::kIds) return fmt::format("{}", id);
  if (kind_ == Kind::kHashed || id < Vocabulary::kFirstOwn) return std::nullopt;
  return values_.at(static_cast<size_t>(id - Vocabulary::kFirstOwn));
}

bool ValueNames::IsUnseen(int64_t id) const {
  return kind_ == Kind::kNamed && id == Vocabulary::kRare;
}

std::string ValueNames::Shown(int64_t id) const {
  if (kind_ == Kind::kNamed && id == Vocabulary::kMissing) return "(missing)";
  if (IsUnseen(id)) return "(rare or unseen)";
  return Value(id).value_or(fmt::format("{}", id));
}

}  // namespace renzan
