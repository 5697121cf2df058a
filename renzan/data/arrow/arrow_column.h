#pragma once

// One column of an Arrow table, and what its values are for in the rows of an import. Not
// thread-safe.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/arrow/arrow_values.h"
#include "renzan/data/text/column_fields.h"

namespace renzan {

class ArrowColumn {
 public:
  // Take() takes no more rows at once.
  static constexpr size_t kMaxRows = 128;

  // `index`: in the schema file, which `fields` are of; without it the column is skipped.
  ArrowColumn(ColumnFields& fields, std::string name, std::optional<size_t> index,
              const ArrowSchema& schema);

  const std::string& name() const { return name_; }
  bool is_used() const { return use_ != Use::kSkip || is_key_ || splits_; }
  // Throws kConfig if the values cannot play the column's role.
  void CheckType() const;
  // Rows are split by this column. Takes and returns what RowSource::SplitBy() does.
  std::string SplitBy(const std::string& format);

  // Of a batch, whose rows are [0, end) of the array.
  void Bind(const ArrowArray* array, int64_t end);
  // Sets this column's part of `rows`, from row `at` of the array on, until one is bad. Returns how
  // many are good, and says what is wrong with the next, all but the column. Texts of rows are
  // valid until the next call.
  size_t Take(int64_t at, std::span<TextRow> rows, BadRow* bad);

 private:
  // How values become a part of a row.
  enum class Use {
    kSkip,
    kText,
    kInteger,
    kPlainText,
    kFloatText,
    kLabel,  // 0 or 1
    kDense,
    kVector,
    kBucket,
    kWeight,
    kTime,
    kBag
  };

  Use UseOf(const CsvColumn& described) const;
  const CsvColumn& described() const { return fields_->columns()[index_]; }

  void TakeIntegers(int64_t at, std::span<TextRow> rows);
  size_t TakeLabels(int64_t at, std::span<TextRow> rows, BadRow* bad);
  size_t TakeNumbers(int64_t at, std::span<TextRow> rows, BadRow* bad) const;
  void TakePlainTexts(int64_t at, std::span<TextRow> rows);
  // Of row `slot` of those that Take() takes.
  bool TakeRow(int64_t at, size_t slot, TextRow* row, BadRow* bad);
  std::string_view TextOf(int64_t at, char* scratch) const;
  std::string_view SplitTextOf(int64_t at, char* scratch) const;
  bool IsMissing(double number) const;
  bool TakeNumber(std::optional<double> number, TextRow* row, BadRow* bad) const;
  bool TakeVector(int64_t at, bool is_null, TextRow* row, BadRow* bad) const;
  bool TakeTime(int64_t at, bool is_null, char* scratch, TextRow* row);
  bool TakeFloatText(int64_t at, bool is_null, char* scratch, TextRow* row, BadRow* bad) const;
  bool IsWholeOrMissing(const ArrowValues& values, int64_t at, char* scratch,
                        std::string_view* text, BadRow* bad) const;
  bool TakeBag(int64_t at, bool is_null, std::vector<char>* texts, TextRow* row, BadRow* bad) const;

  // Where the texts of numbers and times are written, for each row that Take() takes.
  struct Scratch {
    char value[ArrowValues::kMaxNumber], key[ArrowValues::kMaxNumber],
        split[ArrowValues::kMaxNumber];
    std::vector<char> bag;
  };

  ColumnFields* fields_;
  std::string name_;
  size_t index_ = 0;  // in the schema file
  ArrowType type_;
  Use use_ = Use::kSkip;
  bool is_key_ = false, splits_ = false;
  bool words_ = false;           // bool: its text is true and false, not 1 and 0
  std::vector<double> missing_;  // the numbers that mean missing
  bool stays_float_ = false;     // a vector of float32, of which no number is changed
  ArrowValues values_;
  std::vector<char> integers_;    // the texts of kInteger, [kMaxRows, kMaxNumber]
  std::vector<Scratch> scratch_;  // of the other columns, [kMaxRows]
};

}  // namespace renzan
