// How the values of a column become parts of rows.

#include <algorithm>
#include <cmath>

#include "renzan/base/error.h"
#include "renzan/data/arrow/arrow_column.h"
#include "renzan/data/text/csv_record.h"

namespace renzan {
namespace {

constexpr char kNanAdvice[] =
    "where a value is missing, write null instead of NaN, or list nan in the column's 'missing' "
    "in the schema";

// Whether it is a time of the years 0000 to 9999, as text can have.
bool HasYear(int64_t seconds) {
  constexpr int64_t kBegin = -62'167'219'200, kEnd = 253'402'300'800;
  return seconds >= kBegin && seconds < kEnd;
}

}  // namespace

size_t ArrowColumn::Take(int64_t at, std::span<TextRow> rows, BadRow* bad) {
  CHECK(rows.size() <= kMaxRows);
  // The most frequent ones without a decision for each row.
  if (!splits_ && use_ == Use::kInteger) {
    TakeIntegers(at, rows);
    return rows.size();
  }
  if (!splits_ && use_ == Use::kPlainText) {
    TakePlainTexts(at, rows);
    return rows.size();
  }
  if (!splits_ && !is_key_ && (use_ == Use::kDense || use_ == Use::kBucket))
    return TakeNumbers(at, rows, bad);
  scratch_.resize(kMaxRows);
  if (!splits_ && use_ == Use::kLabel) return TakeLabels(at, rows, bad);
  for (size_t i = 0; i < rows.size(); ++i)
    if (!TakeRow(at + static_cast<int64_t>(i), i, &rows[i], bad)) return i;
  return rows.size();
}

void ArrowColumn::TakeIntegers(int64_t at, std::span<TextRow> rows) {
  std::string_view texts[kMaxRows];
  values_.IntegerTexts(at, std::span(texts).first(rows.size()), integers_.data());
  fields_->SetValues(index_, texts, rows);
}

// All but 0 and 1 are as in text.
size_t ArrowColumn::TakeLabels(int64_t at, std::span<TextRow> rows, BadRow* bad) {
  double numbers[kMaxRows];
  values_.Numbers(at, std::span(numbers).first(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t row = at + static_cast<int64_t>(i);
    if ((numbers[i] == 0 || numbers[i] == 1) && !values_.IsNull(row))
      fields_->SetLabel(index_, numbers[i] == 1, &rows[i]);
    else if (!TakeRow(row, i, &rows[i], bad))
      return i;
  }
  return rows.size();
}

// Inlined, because an optional that is passed on is stored in two parts and loaded as one, which
// waits.
[[gnu::always_inline]] inline bool ArrowColumn::TakeNumber(std::optional<double> number,
                                                           TextRow* row, BadRow* bad) const {
  if (number && !missing_.empty() && IsMissing(*number)) number.reset();
  if (use_ == Use::kBucket ? fields_->SetBucket(index_, number, row, bad)
                           : fields_->SetDense(index_, number, row, bad))
    return true;
  if (number && std::isnan(*number)) bad->advice = kNanAdvice;
  return false;
}

size_t ArrowColumn::TakeNumbers(int64_t at, std::span<TextRow> rows, BadRow* bad) const {
  double numbers[kMaxRows];
  values_.Numbers(at, std::span(numbers).first(rows.size()));
  const bool has_nulls = values_.has_nulls();
  size_t good = 0;
  if (use_ == Use::kDense && !has_nulls && missing_.empty() && fields_->HasKnownTransform(index_))
    good = fields_->SetDenseColumn(index_, std::span(numbers).first(rows.size()), rows);
  for (size_t i = good; i < rows.size(); ++i) {
    std::optional<double> number = numbers[i];
    if (has_nulls && values_.IsNull(at + static_cast<int64_t>(i))) number.reset();
    if (!TakeNumber(number, &rows[i], bad)) return i;
  }
  return rows.size();
}

void ArrowColumn::TakePlainTexts(int64_t at, std::span<TextRow> rows) {
  for (TextRow& row : rows) {
    fields_->SetValue(index_, values_.IsNull(at) ? std::string_view() : values_.Text(at, nullptr),
                      &row);
    ++at;
  }
}

bool ArrowColumn::TakeRow(int64_t at, size_t slot, TextRow* row, BadRow* bad) {
  Scratch& scratch = scratch_[slot];
  const bool is_null = values_.IsNull(at);
  if (!is_null && type_.is_time() && !HasYear(values_.Seconds(at)))
    return ColumnFields::Reject(fmt::format("{} seconds since 1970", values_.Seconds(at)),
                                "is no time of the years 0 to 9999", bad);
  if (is_key_ && use_ != Use::kText)
    fields_->SetKey(index_, is_null ? std::string_view() : TextOf(at, scratch.key), row);
  if (splits_) row->split = is_null ? std::string_view() : SplitTextOf(at, scratch.split);
  switch (use_) {
    case Use::kSkip:
      return true;
    case Use::kDense:
    case Use::kBucket:
      return TakeNumber(is_null ? std::nullopt : std::optional(values_.Number(at)), row, bad);
    case Use::kVector:
      return TakeVector(at, is_null, row, bad);
    case Use::kWeight: {
      std::optional<double> number;
      if (!is_null) number = values_.Number(at);
      if (number && IsMissing(*number)) number.reset();
      return fields_->SetWeight(index_, number, row, bad);
    }
    case Use::kTime:
      return TakeTime(at, is_null, scratch.value, row);
    case Use::kBag:
      return TakeBag(at, is_null, &scratch.bag, row, bad);
    case Use::kFloatText:
      return TakeFloatText(at, is_null, scratch.value, row, bad);
    case Use::kInteger:
    case Use::kLabel:
    case Use::kPlainText:
    case Use::kText:
      break;
  }
  return fields_->ParseField(index_, is_null ? std::string_view() : TextOf(at, scratch.value), row,
                             bad);
}

// As a field of a text file would have it.
std::string_view ArrowColumn::TextOf(int64_t at, char* scratch) const {
  if (type_.kind == ArrowKind::kBool && !words_) return values_.Number(at) == 1 ? "1" : "0";
  const std::string_view text = values_.Text(at, scratch);
  return fields_->csv().trim ? TrimBlanks(text) : text;
}

// Empty if it is missing.
std::string_view ArrowColumn::SplitTextOf(int64_t at, char* scratch) const {
  const std::string_view text = TextOf(at, scratch);
  const bool is_number = type_.is_integer() || type_.is_float();
  const bool is_missing =
      fields_->IsMissing(index_, text) || (is_number && IsMissing(values_.Number(at)));
  return is_missing ? std::string_view() : text;
}

bool ArrowColumn::IsMissing(double number) const {
  return std::any_of(missing_.begin(), missing_.end(), [&](double missing) {
    return missing == number || (std::isnan(missing) && std::isnan(number));
  });
}

bool ArrowColumn::TakeVector(int64_t at, bool is_null, TextRow* row, BadRow* bad) const {
  if (is_null) {
    fields_->SetMissingVector(index_, row);
    return true;
  }
  int64_t begin = 0, end = 0;
  values_.ListRange(at, &begin, &end);
  if (!fields_->CheckVectorLength(index_, end - begin, bad)) return false;
  const ArrowValues& items = values_.items();
  for (int64_t i = begin; i < end; ++i) {
    if (items.IsNull(i)) {
      bad->reason = fmt::format("null at position {} of the vector", i - begin);
      bad->advice = "a vector is missing as a whole: write null instead of the list";
      return false;
    }
    const double number = stays_float_ ? items.StoredFloat(i) : items.Number(i);
    if (fields_->SetComponent(index_, i - begin, number, row, bad)) continue;
    if (std::isnan(number))
      bad->advice =
          "a vector is missing as a whole: write null instead of the list; 'missing' does not "
          "apply to its numbers";
    return false;
  }
  return true;
}

bool ArrowColumn::TakeTime(int64_t at, bool is_null, char* scratch, TextRow* row) {
  std::optional<DateParts> parts;
  if (!is_null && !fields_->IsMissing(index_, TextOf(at, scratch)))
    parts = PartsOfSeconds(values_.Seconds(at));
  fields_->SetDate(index_, parts, row);
  return true;
}

bool ArrowColumn::TakeFloatText(int64_t at, bool is_null, char* scratch, TextRow* row,
                                BadRow* bad) const {
  std::string_view text;
  if (!is_null && !IsWholeOrMissing(values_, at, scratch, &text, bad)) return false;
  if (described().role == "categorical") {
    fields_->SetValue(index_, text, row);
  } else {
    std::vector<std::string_view>& bag = fields_->BagOf(index_, row);
    bag.clear();
    if (!text.empty()) bag.push_back(text);
    return fields_->FinishBag(index_, row, bad);
  }
  return true;
}

// A float as a category: programs write its text in different ways unless it is a whole number.
// `text` is empty if it is missing.
bool ArrowColumn::IsWholeOrMissing(const ArrowValues& values, int64_t at, char* scratch,
                                   std::string_view* text, BadRow* bad) const {
  const double number = values.Number(at);
  *text = {};
  if (IsMissing(number)) return true;
  *text = values.Text(at, scratch);
  if (std::isfinite(number) && number == std::trunc(number)) return true;
  bad->advice = std::isnan(number)
                    ? kNanAdvice
                    : "cast the column to text, the same everywhere, to use such numbers as "
                      "categories, or give it the role dense";
  return ColumnFields::Reject(*text, "is a float that is no whole number", bad);
}

bool ArrowColumn::TakeBag(int64_t at, bool is_null, std::vector<char>* texts, TextRow* row,
                          BadRow* bad) const {
  std::vector<std::string_view>& bag = fields_->BagOf(index_, row);
  bag.clear();
  fields_->SetList(index_, row);
  if (is_null) return fields_->FinishBag(index_, row, bad);
  int64_t begin = 0, end = 0;
  values_.ListRange(at, &begin, &end);
  const ArrowValues& items = values_.items();
  // Texts stay where they are.
  const size_t each =
      type_.item->is_text() && !type_.item->is_encoded() ? 0 : ArrowValues::kMaxNumber;
  texts->resize(static_cast<size_t>(end - begin) * each);
  char* scratch = texts->data();
  for (int64_t i = begin; i < end; ++i, scratch += each) {
    std::string_view text;  // of a null: empty
    const bool is_value = !items.IsNull(i);
    if (is_value && type_.item->is_float() && fields_->HasCategories(index_)) {
      if (!IsWholeOrMissing(items, i, scratch, &text, bad)) return false;
    } else if (is_value) {
      text = items.Text(i, scratch);
      if (fields_->csv().trim) text = TrimBlanks(text);
    }
    if (fields_->KeepsInBag(index_, text)) bag.push_back(text);
  }
  return fields_->FinishBag(index_, row, bad);
}

}  // namespace renzan
