#include "renzan/data/row_ids.h"

#include <algorithm>
#include <utility>

namespace renzan {

RowIds::RowIds(const DatasetSchema& schema, std::vector<Vocabulary> vocabularies)
    : vocabularies_(std::move(vocabularies)), lookups_(vocabularies_.size()) {
  for (size_t f = 0; f < vocabularies_.size(); ++f) {
    owners_.push_back(FirstOfTable(schema, f));
    (schema.categorical[f].multi_hot ? multi_hot_ : one_hot_).push_back(f);
  }
  for (size_t i = 0; i < one_hot_.size(); ++i) {
    const size_t f = one_hot_[i];
    const bool shares = std::count(owners_.begin(), owners_.end(), owners_[f]) > 1;
    (shares && VocabularyOf(f).provisional() ? by_row_ : by_column_).push_back(i);
    all_.push_back(i);
  }
}

bool RowIds::provisional() const {
  return std::any_of(owners_.begin(), owners_.end(),
                     [&](size_t owner) { return vocabularies_[owner].provisional(); });
}

void RowIds::LookUp(std::span<TextRow* const> rows, int64_t first) {
  ids_.resize(rows.size() * one_hot_.size());
  bags_.resize(rows.size() * multi_hot_.size());
  // A single row, as of a text file, has no columns that are worth it.
  const bool has_columns = rows.size() > 1;
  if (has_columns)
    for (const size_t i : by_column_) LookUpColumn(rows, first, i);
  const std::vector<size_t>& others = has_columns ? by_row_ : all_;
  for (size_t r = 0; r < rows.size(); ++r) {
    const int64_t row = first + static_cast<int64_t>(r);
    for (const size_t i : others)
      ids_[r * one_hot_.size() + i] = LookUpValue(one_hot_[i], rows[r]->one_hot[i], row, 0);
    for (size_t i = 0; i < multi_hot_.size(); ++i) {
      std::vector<int64_t>& bag = bags_[r * multi_hot_.size() + i];
      bag.clear();
      for (std::string_view value : rows[r]->multi_hot[i])
        bag.push_back(LookUpValue(multi_hot_[i], value, row, std::ssize(bag)));
    }
  }
}

void RowIds::LookUpColumn(std::span<TextRow* const> rows, int64_t first, size_t one_hot) {
  const size_t feature = one_hot_[one_hot];
  values_.resize(rows.size());
  column_ids_.resize(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) values_[r] = rows[r]->one_hot[one_hot];
  VocabularyOf(feature).Ids(values_, first, FirstPosition(feature), column_ids_);
  UnseenLookups& lookups = lookups_[feature];
  for (const int64_t id : column_ids_) {
    lookups.lookups += id != Vocabulary::kMissing;
    lookups.unseen += id == Vocabulary::kRare;
  }
  for (size_t r = 0; r < rows.size(); ++r) ids_[r * one_hot_.size() + one_hot] = column_ids_[r];
}

int64_t RowIds::LookUpValue(size_t feature, std::string_view value, int64_t row, int64_t position) {
  const int64_t id = VocabularyOf(feature).Id(value, row, FirstPosition(feature) + position);
  lookups_[feature].lookups += id != Vocabulary::kMissing;
  lookups_[feature].unseen += id == Vocabulary::kRare;
  return id;
}

}  // namespace renzan
