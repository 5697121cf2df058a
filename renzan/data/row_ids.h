#pragma once

// The ids of the categorical features of an import's rows. Not thread-safe.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/import.h"
#include "renzan/data/text/row_parser.h"
#include "renzan/data/vocabulary.h"

namespace renzan {

class RowIds {
 public:
  // `vocabularies`: by feature; features of one table have that of the first of them, its owner.
  RowIds(const DatasetSchema& schema, std::vector<Vocabulary> vocabularies);

  size_t size() const { return vocabularies_.size(); }
  size_t OwnerOf(size_t feature) const { return owners_[feature]; }
  bool IsOwner(size_t feature) const { return owners_[feature] == feature; }
  Vocabulary& VocabularyOf(size_t feature) { return vocabularies_[owners_[feature]]; }
  const Vocabulary& VocabularyOf(size_t feature) const { return vocabularies_[owners_[feature]]; }
  const std::vector<Vocabulary>& vocabularies() const { return vocabularies_; }
  // Whether any has provisional ids.
  bool provisional() const;
  // Of all rows so far; without the feature's name.
  const UnseenLookups& LookupsOf(size_t feature) const { return lookups_[feature]; }

  // Looks up the values of `rows`, which are those of the dataset from `first` on.
  void LookUp(std::span<TextRow* const> rows, int64_t first);
  // What it found for rows[i]: the ids of the one-hot features, and the bags of the others.
  std::span<const int64_t> OneHotOf(size_t i) const {
    return std::span(ids_).subspan(i * one_hot_.size(), one_hot_.size());
  }
  std::span<const std::vector<int64_t>> BagsOf(size_t i) const {
    return std::span(bags_).subspan(i * multi_hot_.size(), multi_hot_.size());
  }

 private:
  // Lookups of several features of one row are at different positions.
  int64_t FirstPosition(size_t feature) const {
    return static_cast<int64_t>(feature - owners_[feature]) * (int64_t{1} << 32);
  }
  void LookUpColumn(std::span<TextRow* const> rows, int64_t first, size_t one_hot);
  int64_t LookUpValue(size_t feature, std::string_view value, int64_t row, int64_t position);

  std::vector<Vocabulary> vocabularies_;
  std::vector<size_t> owners_;               // by feature
  std::vector<UnseenLookups> lookups_;       // by feature
  std::vector<size_t> one_hot_, multi_hot_;  // features
  // Of the one-hot features: those whose vocabulary others add values to, too, so that the values'
  // ids depend on the order of rows, the rest, and all.
  std::vector<size_t> by_row_, by_column_, all_;
  std::vector<int64_t> ids_;                // [rows, one-hot features]
  std::vector<std::vector<int64_t>> bags_;  // [rows, multi-hot features]
  std::vector<std::string_view> values_;    // of a column
  std::vector<int64_t> column_ids_;
};

}  // namespace renzan
