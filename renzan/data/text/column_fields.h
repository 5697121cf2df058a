#pragma once

// The columns of a schema file: which features they make, and how the field of a column becomes a
// part of a row. Shared by CSV files and tables in memory. Not thread-safe.

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/dense_transform.h"
#include "renzan/data/text/bag.h"
#include "renzan/data/text/csv_schema.h"
#include "renzan/data/text/date.h"
#include "renzan/data/text/row_parser.h"
#include "renzan/data/text/weighted_bags.h"

namespace renzan {

class ColumnFields {
 public:
  // Throws kConfig if labels are required and no column is one. `name`: of the schema, in messages.
  ColumnFields(CsvSchema csv, std::string name, Labels labels);

  // Replaces patterns by the names that the input has, and takes note of columns that it may lack
  // and does. `names` is null where columns have no names: then the input has all of them.
  void Begin(const std::vector<std::string>* names);

  const std::string& name() const { return name_; }
  const CsvSchema& csv() const { return csv_; }
  const std::vector<CsvColumn>& columns() const { return csv_.columns; }
  // Whether no file has the column, which only training and evaluation read.
  bool is_absent(size_t index) const { return absent_[index] != 0; }
  bool MayBeAbsent(const CsvColumn& column) const;
  // The columns that `names` lacks, except absent ones.
  std::vector<std::string> NamesLackedBy(const std::vector<std::string>& names) const;

  const DatasetSchema& schema() const { return schema_; }
  const std::vector<double>& unseen_shares() const { return unseen_shares_; }
  const std::vector<std::string>& keys() const { return keys_; }

  // As of RowParser.
  std::string SplitBy(const std::string& column);
  size_t split_index() const { return split_index_; }

  // Prepare() once, BeginRow() before each row that it takes.
  void Prepare(TextRow* row) const;
  void BeginRow(TextRow* row) const { weighted_bags_.BeginRow(row); }
  // These return false and say in *bad what is wrong, all but the column.
  bool ParseField(size_t index, std::string_view field, TextRow* row, BadRow* bad);
  // Nothing: missing.
  [[gnu::always_inline]] bool SetDense(size_t index, std::optional<double> value, TextRow* row,
                                       BadRow* bad) const {
    return SetDenseSlot(slots_[index], value, row) || RejectDense(value.value_or(0), bad);
  }
  // Whether SetDenseColumn() can: no constant of the transform is missing.
  bool HasKnownTransform(size_t index) const {
    return !transforms_[slots_[index]].needs_constants();
  }
  // Of rows in which none is missing. Returns how many are good before the first that is not.
  size_t SetDenseColumn(size_t index, std::span<const double> values, std::span<TextRow> rows);
  // Of a vector, which is missing as a whole: the numbers one by one, of which there must be as
  // many as the column's dimension.
  void SetMissingVector(size_t index, TextRow* row) const;
  bool CheckVectorLength(size_t index, int64_t length, BadRow* bad) const;
  bool SetComponent(size_t index, int64_t position, double value, TextRow* row, BadRow* bad) const;
  // Of a categorical column with buckets; nothing: missing.
  bool SetBucket(size_t index, std::optional<double> value, TextRow* row, BadRow* bad) const;
  bool SetWeight(size_t index, std::optional<double> value, TextRow* row, BadRow* bad) const;
  void SetDate(size_t index, const std::optional<DateParts>& value, TextRow* row) const;
  bool ParseLabel(size_t index, std::string_view field, TextRow* row, BadRow* bad) const;
  // Of a label whose rule is 0/1.
  void SetLabel(size_t index, bool is_one, TextRow* row) const {
    LabelOf(index, row) = is_one ? 1.0f : 0.0f;
    if (is_first_label(index)) row->other_label = {};
  }
  // Once all columns were set: whether the row has any of its labels, all of which may be optional.
  bool HasLabel(const TextRow& row, BadRow* bad) const;
  bool may_lack_labels() const { return may_lack_labels_; }
  // Of a categorical column; a field that is missing is empty.
  void SetValue(size_t index, std::string_view field, TextRow* row) const {
    row->one_hot[slots_[index]] = field;
  }
  void SetValues(size_t index, std::span<const std::string_view> fields,
                 std::span<TextRow> rows) const {
    const size_t slot = slots_[index];
    for (size_t i = 0; i < rows.size(); ++i) rows[i].one_hot[slot] = fields[i];
  }
  // Whether its values are ids of a vocabulary, not numbers.
  bool HasCategories(size_t index) const {
    return csv_.columns[index].role == "categorical" || csv_.columns[index].role == "multi_hot";
  }
  // Where the values of a bag, or the texts of its weights, are appended: those that KeepsInBag().
  std::vector<std::string_view>& BagOf(size_t index, TextRow* row) const {
    std::vector<std::string_view>* const texts = weighted_bags_.TextsOf(index, row);
    return texts != nullptr ? *texts : row->multi_hot[slots_[index]];
  }
  // Where there are weights, dropped values keep their positions until they were matched.
  bool KeepsInBag(size_t index, std::string_view value) const {
    return weighted_bags_.Has(index) || (!value.empty() && !IsMissing(index, value));
  }
  // Its field is a list, which says itself whether it is empty.
  void SetList(size_t index, TextRow* row) const { weighted_bags_.SetList(index, row); }
  // Once all were appended: shortens a bag that is longer than the column allows, and matches its
  // values and their weights, or returns false.
  bool FinishBag(size_t index, TextRow* row, BadRow* bad) const;
  bool is_key(size_t index) const { return key_slots_[index] != kNoKey; }
  void SetKey(size_t index, std::string_view field, TextRow* row) const {
    row->keys[key_slots_[index]] = field;
  }
  bool IsMissing(size_t index, std::string_view field) const;

  // Until a row was read, what is wrong may be the schema rather than the row.
  void HasReadRow() { has_read_row_ = true; }
  bool has_read_row() const { return has_read_row_; }
  void Suggest(std::string_view change, BadRow* bad) const {
    if (!has_read_row_) bad->alternative = change;
  }
  static bool Reject(std::string_view field, std::string_view problem, BadRow* bad);

 private:
  bool is_first_label(size_t index) const { return &csv_.columns[index] == first_label_; }
  float& LabelOf(size_t index, TextRow* row) const {
    return is_first_label(index) ? row->label : row->further_labels[slots_[index]];
  }
  void CheckLabels() const;
  void SetColumns();
  size_t AddFeature(const CsvColumn& column, const std::string& name, const std::string& parsing);
  size_t AddDense(const CsvColumn& column, const std::string& name);
  size_t AddVector(const CsvColumn& column, const std::string& name);
  bool ParseWeight(size_t index, std::string_view field, TextRow* row, BadRow* bad) const;
  bool ParseDense(size_t index, std::string_view field, TextRow* row, BadRow* bad) const;
  bool ParseVector(size_t index, std::string_view field, TextRow* row, BadRow* bad);
  bool ParseBucket(size_t index, std::string_view field, TextRow* row, BadRow* bad) const;
  BagFormat FormatOf(size_t index) const;
  bool ParseBag(size_t index, std::string_view field, TextRow* row, BadRow* bad);
  bool ParseDate(size_t index, std::string_view field, TextRow* row, BadRow* bad);
  static bool RejectDense(double value, BadRow* bad);
  // Returns false for a number that is not finite. No number means missing.
  [[gnu::always_inline]] bool SetDenseSlot(size_t slot, std::optional<double> value,
                                           TextRow* row) const {
    const DenseTransform& transform = transforms_[slot];
    float& dense = row->dense[slot];
    dense = 0;
    if (transform.needs_constants()) {
      row->unscaled[unscaled_slots_[slot]] =
          value.value_or(std::numeric_limits<double>::quiet_NaN());
      return !value || std::isfinite(static_cast<float>(*value));
    }
    dense = value ? transform.Apply(*value) : transform.OfMissing();
    return !value || (std::isfinite(*value) && std::isfinite(dense));
  }

  const std::string name_;
  const Labels labels_;
  CsvSchema csv_;
  std::vector<char> absent_;  // by column
  const CsvColumn* first_label_ = nullptr;
  bool may_lack_labels_ = false;  // whether all labels are optional
  DatasetSchema schema_;
  std::vector<double> unseen_shares_;  // of schema_.categorical
  size_t num_one_hot_ = 0, num_multi_hot_ = 0;
  std::vector<DenseTransform> transforms_;  // of dense features
  std::vector<size_t> unscaled_slots_;      // by dense feature: index in TextRow::unscaled
  size_t num_unscaled_ = 0;
  struct Date {
    DateFormat format;
    std::vector<size_t> slots = {};  // of its parts
    size_t first_text = 0;           // in TextRow::texts, where those of categorical parts are
  };
  std::vector<Date> dates_;  // by column
  size_t num_texts_ = 0;
  std::vector<size_t> slots_;  // by column: index in the row's vector for its role
  std::vector<std::vector<std::string>> buckets_;  // by column: the values that its numbers become
  std::vector<std::string_view> components_;       // the texts of a vector
  std::vector<float> transformed_;                 // of SetDenseColumn()
  WeightedBags weighted_bags_;
  std::vector<std::string> keys_;
  std::vector<size_t> key_slots_;  // by column: index in keys_
  static constexpr size_t kNoKey = static_cast<size_t>(-1);
  size_t split_index_ = static_cast<size_t>(-1);  // of the column of SplitBy()
  bool has_read_row_ = false;
};

}  // namespace renzan
