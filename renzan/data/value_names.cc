#include "renzan/data/value_names.h"

#include <fmt/format.h>

#include "renzan/data/vocabulary.h"

namespace renzan {

ValueNames::ValueNames(const Dataset& dataset, size_t feature) {
  const CategoricalFeature& of = dataset.schema().categorical[feature];
  kind_ = of.vocabulary == "ids"               ? Kind::kIds
          : of.vocabulary.starts_with("hash:") ? Kind::kHashed
                                               : Kind::kNamed;
  if (kind_ == Kind::kNamed)
    values_ = ReadVocabularyValues(dataset.directory(), dataset.manifest(), of.name);
}

std::optional<std::string> ValueNames::Value(int64_t id) const {
  if (kind_ == Kind::kIds) return fmt::format("{}", id);
  if (id == Vocabulary::kMissing) return "";
  const size_t own = static_cast<size_t>(id - Vocabulary::kFirstOwn);
  if (kind_ == Kind::kHashed || id < Vocabulary::kFirstOwn || own >= values_.size())
    return std::nullopt;
  return values_[own];
}

std::string ValueNames::Label(int64_t id) const {
  if (kind_ != Kind::kIds && id == Vocabulary::kMissing) return "(missing)";
  if (kind_ == Kind::kNamed && id == Vocabulary::kRare) return "(other)";
  const std::optional<std::string> value = Value(id);
  return value ? *value : fmt::format("id {}", id);
}

}  // namespace renzan
