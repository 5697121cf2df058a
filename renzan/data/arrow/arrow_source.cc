#include "renzan/data/arrow/arrow_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/data/arrow/arrow_abi.h"
#include "renzan/data/arrow/arrow_values.h"
#include "renzan/data/row_split.h"
#include "renzan/data/text/column_fields.h"
#include "renzan/data/text/csv_record.h"
#include "renzan/data/text/parse_number.h"

namespace renzan {
namespace {

// What pandas calls a column that holds an index.
constexpr std::string_view kIndexName = "__index_level_";

// How the values of a column become a part of a row.
enum class Use {
  kSkip,
  kText,
  kInteger,
  kPlainText,
  kFloatText,
  kDense,
  kVector,
  kBucket,
  kWeight,
  kTime,
  kBag
};

struct Column {
  std::string name;
  size_t index = 0;  // in the schema file
  ArrowType type;
  Use use = Use::kSkip;
  bool is_key = false, splits = false;
  bool is_used() const { return use != Use::kSkip || is_key || splits; }
  bool words = false;                // bool: its text is true and false, not 1 and 0
  std::vector<double> missing = {};  // the numbers that mean missing
  bool stays_float = false;          // a vector of float32, of which no number is changed
  ArrowValues values = {};
  char scratch[ArrowValues::kMaxNumber] = {}, key_scratch[ArrowValues::kMaxNumber] = {};
  char split_scratch[ArrowValues::kMaxNumber] = {};
  std::vector<char> bag_scratch = {};
};

bool IsUtc(std::string_view zone) {
  static constexpr std::string_view kUtc[] = {"",        "UTC", "Etc/UTC", "GMT",
                                              "Etc/GMT", "Z",   "+00:00",  "-00:00"};
  return std::find(std::begin(kUtc), std::end(kUtc), zone) != std::end(kUtc);
}

// Whether it is a time of the years 0000 to 9999, as text can have.
bool HasYear(int64_t seconds) {
  constexpr int64_t kBegin = -62'167'219'200, kEnd = 253'402'300'800;
  return seconds >= kBegin && seconds < kEnd;
}

class ArrowSource : public RowSource {
 public:
  ArrowSource(ArrowArrayStream* stream, CsvSchema schema, const std::string& schema_name,
              Labels labels)
      : stream_(stream), fields_(std::move(schema), schema_name, labels) {}

  void Begin() override {
    ArrowOwned<ArrowSchema> schema;
    if (stream_->get_schema == nullptr || stream_->get_next == nullptr)
      Fail(ErrorCode::kUsage, "the stream is malformed: get_schema or get_next is NULL");
    if (const int error = stream_->get_schema(stream_, schema.Out()); error != 0)
      Fail(ErrorCode::kIo, "the stream gives no schema: {}", LastError(error));
    if (!schema.holds() || schema->format == nullptr || std::strcmp(schema->format, "+s") != 0)
      Fail(ErrorCode::kUsage,
           "the stream has no columns: give a table, a data frame or a stream of record batches");
    std::vector<std::string> names;
    for (int64_t i = 0; i < schema->n_children; ++i) {
      if (schema->children == nullptr || schema->children[i] == nullptr)
        Fail(ErrorCode::kData, "column {}: the stream's schema is malformed: it is NULL", i + 1);
      const char* const name = schema->children[i]->name;
      names.emplace_back(name == nullptr ? "" : name);
    }
    fields_.Begin(&names);
    CheckNames(names);
    for (size_t i = 0; i < names.size(); ++i) AddColumn(names[i], *schema->children[i]);
    for (const Column& column : columns_)
      if (column.use != Use::kSkip || column.is_key) CheckType(column);
  }

  const DatasetSchema& schema() const override { return fields_.schema(); }
  std::vector<double> unseen_shares() const override { return fields_.unseen_shares(); }
  std::vector<std::string> keys() const override { return fields_.keys(); }

  std::string SplitBy(const std::string& name) override {
    const std::string format = fields_.SplitBy(name);
    const auto found = std::find_if(columns_.begin(), columns_.end(),
                                    [&](const Column& column) { return column.name == name; });
    CHECK(found != columns_.end());
    found->splits = true;
    if (found->type.is_list())
      Fail(ErrorCode::kUsage, "--split: column '{}' holds lists", Escape(name));
    CheckType(*found);
    const ArrowType& type = found->type;
    if (type.is_time()) return type.kind == ArrowKind::kTimestamp ? kIsoTimes : kIsoDates;
    return format.empty() && (type.is_integer() || type.is_float()) ? kNumbers : format;
  }

  RowParser::Result Next(TextRow* row, BadRow* bad) override {
    while (at_ == batch_rows_)
      if (!NextBatch()) return RowParser::Result::kEnd;
    const int64_t at = first_ + at_++;
    bad->line = row->line = row_++;
    fields_.Prepare(row);
    for (size_t i = 0; i < columns_.size(); ++i) {
      Column& column = columns_[i];
      if (!column.is_used()) continue;
      if (Take(column, at, row, bad)) continue;
      bad->column = i + 1;
      bad->name = column.name;
      return RowParser::Result::kBadRow;
    }
    fields_.HasReadRow();
    return RowParser::Result::kRow;
  }

  std::string names() const override { return "the table"; }
  std::string name() const override { return "the table"; }
  std::string PlaceOf(int64_t line) const override { return fmt::format("row {}", line); }
  std::string HowToSkip() const override { return "skip bad rows with on_bad_row=\"skip\""; }
  void Report(ImportProgress* /*progress*/) const override {}

 private:
  std::string LastError(int error) const {
    const char* const said =
        stream_->get_last_error == nullptr ? nullptr : stream_->get_last_error(stream_);
    std::string_view text = said == nullptr ? "" : said;
    // PyArrow appends a traceback.
    text = text.substr(0, text.find(". Detail: Python exception"));
    return text.empty() ? std::string(std::strerror(error))
                        : fmt::format("{} ({})", Escape(text), std::strerror(error));
  }

  void CheckNames(const std::vector<std::string>& names) const {
    const std::vector<std::string> lacked = fields_.NamesLackedBy(names);
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[i];
      if (std::count(names.begin(), names.end(), name) > 1)
        Fail(ErrorCode::kData, "the table has more than one column '{}': rename all but one",
             Escape(name));
      if (IndexOf(name) || name.starts_with(kIndexName)) continue;
      const std::string nearest = NearestName(name, lacked);
      Fail(ErrorCode::kConfig,
           "column {} '{}' of the table is not in {}{}; give an unwanted column the role skip, or "
           "leave it out of the table",
           i + 1, Escape(name), fields_.name(),
           nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest));
    }
    if (lacked.empty()) return;
    const bool is_label = fields_.columns()[*IndexOf(lacked[0])].role == "label";
    Fail(ErrorCode::kConfig, "the table has no column '{}', which {} declares{}", Escape(lacked[0]),
         fields_.name(),
         is_label ? fmt::format("; {}", kUnlabelledAdvice)
                  : ": remove it there, or add it to the table, with nulls if need be");
  }

  // Of a column of the schema file.
  std::optional<size_t> IndexOf(std::string_view name) const {
    const std::vector<CsvColumn>& columns = fields_.columns();
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const CsvColumn& column) { return column.name == name; });
    if (found == columns.end()) return std::nullopt;
    return static_cast<size_t>(found - columns.begin());
  }

  void AddColumn(const std::string& name, const ArrowSchema& schema) {
    Column column{.name = name, .type = ArrowType::Of(schema)};
    const std::optional<size_t> index = IndexOf(name);
    if (!index)
      LogWarning("column '{}' of the table, an index of pandas, is skipped", Escape(name));
    if (index) {
      column.index = *index;
      column.is_key = fields_.is_key(*index);
      column.use = UseOf(fields_.columns()[*index], column);
      column.stays_float = column.use == Use::kVector && fields_.columns()[*index].is_unchanged() &&
                           column.type.item->kind == ArrowKind::kFloat &&
                           !column.type.item->is_encoded();
      const LabelRule& rule = fields_.columns()[*index].label;
      column.words = fields_.columns()[*index].role != "label" || !rule.positive.empty() ||
                     rule.values == "no/yes" || rule.values == "false/true";
      for (const std::string& text : fields_.columns()[*index].missing)
        if (const std::optional<double> number = ParseNumber(text))
          column.missing.push_back(*number);
    }
    columns_.push_back(std::move(column));
  }

  Use UseOf(const CsvColumn& described, const Column& column) const {
    const ArrowType& type = column.type;
    if (described.role == "skip" || described.role == "key") return Use::kSkip;
    if (type.is_list()) return described.is_vector() ? Use::kVector : Use::kBag;
    if (!described.bounds.empty()) return type.is_number() ? Use::kBucket : Use::kText;
    if (described.role == "dense" && type.is_number()) return Use::kDense;
    if (described.role == "weight" && type.is_number()) return Use::kWeight;
    if (described.role == "date" && type.is_time()) return Use::kTime;
    if (described.role == "categorical" || described.role == "multi_hot") {
      if (type.is_float()) return Use::kFloatText;
      if (described.role == "categorical" && !type.is_encoded() && described.missing.empty() &&
          !column.is_key) {
        if (type.is_integer()) return Use::kInteger;
        if (type.is_text() && !fields_.csv().trim) return Use::kPlainText;
      }
    }
    return Use::kText;
  }

  // Whether the column's values can play its role.
  void CheckType(const Column& column) const {
    const CsvColumn& described = fields_.columns()[column.index];
    const ArrowType& type = column.type;
    std::string advice;
    if (type.kind == ArrowKind::kOther || (type.is_list() && type.item->is_list()) ||
        (type.is_list() && (type.item->kind == ArrowKind::kOther || type.item->is_time()))) {
      advice = "cast it to integers, float64 or strings, or lists of them";
    } else if (type.is_list() && !described.is_list()) {
      advice = "lists have the role multi_hot, or dense with their length as the dimension";
    } else if (described.is_vector() && !type.is_list() && !type.is_text() &&
               type.kind != ArrowKind::kNull) {
      advice = fmt::format("cast it to lists of {}", Counted(described.dimension, "number"));
    } else if (described.is_vector() && type.is_list() && !type.item->is_number()) {
      advice = "cast its items to float32";
    } else if (described.is_vector() && type.kind == ArrowKind::kFixedList &&
               type.list_size != described.dimension) {
      advice = fmt::format("its lists have {}, but dimension is {}",
                           Counted(type.list_size, "number"), described.dimension);
    } else if (type.is_list() && column.is_key) {
      advice = "a key needs a text: remove 'key: true'";
    } else if (described.role == "date" && type.is_time()) {
      const bool has_hour = std::any_of(described.parts.begin(), described.parts.end(),
                                        [](const auto& part) { return part.name == "hour"; });
      if (has_hour && type.kind != ArrowKind::kTimestamp)
        advice = "dates have no hour: remove it from 'parts', or cast the column to a timestamp";
    } else if (type.is_time() && described.role != "date" && described.role != "categorical" &&
               described.role != "skip" && !column.is_key) {
      advice = "dates and times have the role date";
    }
    if (advice.empty() && type.is_time() && !IsUtc(type.zone))
      Fail(ErrorCode::kConfig,
           "column '{}' of the table has the time zone '{}': convert it to UTC, or to the local "
           "time without a zone, so that its days and hours are those that you mean",
           Escape(column.name), Escape(type.zone));
    if (advice.empty()) return;
    Fail(ErrorCode::kConfig, "column '{}' of the table has the type {}, and in {} the role {}: {}",
         Escape(column.name), type.name, fields_.name(), described.role, advice);
  }

  // Whose columns' values are then hidden. A producer may leave counting to us.
  static int64_t NullRows(const ArrowArray& batch) {
    if (batch.null_count >= 0) return batch.null_count;
    if (batch.n_buffers < 1 || batch.buffers == nullptr || batch.buffers[0] == nullptr) return 0;
    int64_t nulls = 0;
    for (int64_t row = batch.offset; row < batch.offset + batch.length; ++row)
      nulls += !ArrowValues::Bit(batch.buffers[0], row);
    return nulls;
  }

  bool NextBatch() {
    if (const int error = stream_->get_next(stream_, batch_.Out()); error != 0)
      Fail(ErrorCode::kIo, "the stream failed after {}: {}; nothing was written",
           Counted(row_, "row"), LastError(error));
    if (!batch_.holds()) return false;
    if (batch_->n_children != std::ssize(columns_) || batch_->length < 0 || batch_->offset < 0)
      Fail(ErrorCode::kData, "after {} the stream has a batch of {}, not {}", Counted(row_, "row"),
           Counted(batch_->n_children, "column"), columns_.size());
    if (batch_->length > std::numeric_limits<int64_t>::max() - batch_->offset)
      Fail(ErrorCode::kData, "after {} the stream has a malformed batch: {} from {} on",
           Counted(row_, "row"), Counted(batch_->length, "row"), batch_->offset);
    if (batch_->n_children > 0 && batch_->children == nullptr)
      Fail(ErrorCode::kData, "after {} the stream has a malformed batch: its columns are NULL",
           Counted(row_, "row"));
    at_ = 0;
    batch_rows_ = batch_->length;
    first_ = batch_->offset;
    for (size_t i = 0; i < columns_.size(); ++i) {
      Column& column = columns_[i];
      if (!column.is_used()) continue;
      column.values.Bind(column.type, batch_->children[i], column.name);
      if (column.values.length() < first_ + batch_rows_)
        Fail(ErrorCode::kData, "column '{}' has {} in a batch of {}", Escape(column.name),
             Counted(column.values.length(), "value"), Counted(first_ + batch_rows_, "row"));
    }
    if (const int64_t nulls = NullRows(*batch_); nulls > 0)
      Fail(ErrorCode::kData, "after {} the stream has a batch with {} null", Counted(row_, "row"),
           nulls == 1 ? "a row that is" : fmt::format("{} rows that are", nulls));
    return true;
  }

  // Values are written where TextRow's views stay valid until the next row: to the column's
  // scratch.
  bool Take(Column& column, int64_t at, TextRow* row, BadRow* bad) {
    const bool is_null = column.values.IsNull(at);
    if (!is_null && column.type.is_time() && !HasYear(column.values.Seconds(at)))
      return ColumnFields::Reject(fmt::format("{} seconds since 1970", column.values.Seconds(at)),
                                  "is no time of the years 0 to 9999", bad);
    if (column.is_key && column.use != Use::kText)
      fields_.SetKey(column.index,
                     is_null ? std::string_view() : TextOf(column, at, column.key_scratch), row);
    if (column.splits) row->split = is_null ? std::string_view() : SplitTextOf(column, at);
    switch (column.use) {
      case Use::kSkip:
        return true;
      case Use::kInteger:
        fields_.SetValue(
            column.index,
            is_null ? std::string_view() : column.values.IntegerText(at, column.scratch), row);
        return true;
      case Use::kPlainText:
        fields_.SetValue(column.index,
                         is_null ? std::string_view() : column.values.Text(at, column.scratch),
                         row);
        return true;
      case Use::kDense:
      case Use::kBucket:
        return TakeNumber(column, at, is_null, row, bad);
      case Use::kVector:
        return TakeVector(column, at, is_null, row, bad);
      case Use::kWeight: {
        std::optional<double> number;
        if (!is_null) number = column.values.Number(at);
        if (number && IsMissing(column, *number)) number.reset();
        return fields_.SetWeight(column.index, number, row, bad);
      }
      case Use::kTime:
        return TakeTime(column, at, is_null, row);
      case Use::kBag:
        return TakeBag(column, at, is_null, row, bad);
      case Use::kFloatText:
        return TakeFloatText(column, at, is_null, row, bad);
      case Use::kText:
        break;
    }
    return fields_.ParseField(
        column.index, is_null ? std::string_view() : TextOf(column, at, column.scratch), row, bad);
  }

  // As a field of a text file would have it.
  std::string_view TextOf(const Column& column, int64_t at, char* scratch) const {
    if (column.type.kind == ArrowKind::kBool && !column.words)
      return column.values.Number(at) == 1 ? "1" : "0";
    const std::string_view text = column.values.Text(at, scratch);
    return fields_.csv().trim ? TrimBlanks(text) : text;
  }

  // Empty if it is missing.
  std::string_view SplitTextOf(Column& column, int64_t at) const {
    const std::string_view text = TextOf(column, at, column.split_scratch);
    const bool is_number = column.type.is_integer() || column.type.is_float();
    const bool is_missing = fields_.IsMissing(column.index, text) ||
                            (is_number && IsMissing(column, column.values.Number(at)));
    return is_missing ? std::string_view() : text;
  }

  static bool IsMissing(const Column& column, double number) {
    return std::any_of(column.missing.begin(), column.missing.end(), [&](double missing) {
      return missing == number || (std::isnan(missing) && std::isnan(number));
    });
  }

  bool TakeNumber(const Column& column, int64_t at, bool is_null, TextRow* row, BadRow* bad) const {
    std::optional<double> number;
    if (!is_null) number = column.values.Number(at);
    if (number && IsMissing(column, *number)) number.reset();
    if (column.use == Use::kBucket ? fields_.SetBucket(column.index, number, row, bad)
                                   : fields_.SetDense(column.index, number, row, bad))
      return true;
    if (number && std::isnan(*number)) bad->advice = kNanAdvice;
    return false;
  }

  bool TakeVector(const Column& column, int64_t at, bool is_null, TextRow* row, BadRow* bad) const {
    if (is_null) {
      fields_.SetMissingVector(column.index, row);
      return true;
    }
    int64_t begin = 0, end = 0;
    column.values.ListRange(at, &begin, &end);
    if (!fields_.CheckVectorLength(column.index, end - begin, bad)) return false;
    const ArrowValues& items = column.values.items();
    for (int64_t i = begin; i < end; ++i) {
      if (items.IsNull(i)) {
        bad->reason = fmt::format("null at position {} of the vector", i - begin);
        bad->advice = "a vector is missing as a whole: write null instead of the list";
        return false;
      }
      const double number = column.stays_float ? items.StoredFloat(i) : items.Number(i);
      if (fields_.SetComponent(column.index, i - begin, number, row, bad)) continue;
      if (std::isnan(number))
        bad->advice =
            "a vector is missing as a whole: write null instead of the list; 'missing' does not "
            "apply to its numbers";
      return false;
    }
    return true;
  }

  bool TakeTime(Column& column, int64_t at, bool is_null, TextRow* row) {
    std::optional<DateParts> parts;
    if (!is_null && !fields_.IsMissing(column.index, TextOf(column, at, column.scratch)))
      parts = PartsOfSeconds(column.values.Seconds(at));
    fields_.SetDate(column.index, parts, row);
    return true;
  }

  bool TakeFloatText(Column& column, int64_t at, bool is_null, TextRow* row, BadRow* bad) {
    std::string_view text;
    if (!is_null && !IsWholeOrMissing(column, column.values, at, column.scratch, &text, bad))
      return false;
    if (fields_.columns()[column.index].role == "categorical") {
      fields_.SetValue(column.index, text, row);
    } else {
      std::vector<std::string_view>& bag = fields_.BagOf(column.index, row);
      bag.clear();
      if (!text.empty()) bag.push_back(text);
      return fields_.FinishBag(column.index, row, bad);
    }
    return true;
  }

  // A float as a category: programs write its text in different ways unless it is a whole number.
  // `text` is empty if it is missing.
  static bool IsWholeOrMissing(const Column& column, const ArrowValues& values, int64_t at,
                               char* scratch, std::string_view* text, BadRow* bad) {
    const double number = values.Number(at);
    *text = {};
    if (IsMissing(column, number)) return true;
    *text = values.Text(at, scratch);
    if (std::isfinite(number) && number == std::trunc(number)) return true;
    bad->advice = std::isnan(number)
                      ? kNanAdvice
                      : "cast the column to text, the same everywhere, to use such numbers as "
                        "categories, or give it the role dense";
    return ColumnFields::Reject(*text, "is a float that is no whole number", bad);
  }

  bool TakeBag(Column& column, int64_t at, bool is_null, TextRow* row, BadRow* bad) {
    std::vector<std::string_view>& bag = fields_.BagOf(column.index, row);
    bag.clear();
    if (is_null) return fields_.FinishBag(column.index, row, bad);
    int64_t begin = 0, end = 0;
    column.values.ListRange(at, &begin, &end);
    const ArrowValues& items = column.values.items();
    column.bag_scratch.resize(static_cast<size_t>(end - begin) * ArrowValues::kMaxNumber);
    char* scratch = column.bag_scratch.data();
    for (int64_t i = begin; i < end; ++i, scratch += ArrowValues::kMaxNumber) {
      std::string_view text;  // of a null: empty
      const bool is_value = !items.IsNull(i);
      if (is_value && column.type.item->is_float() && fields_.HasCategories(column.index)) {
        if (!IsWholeOrMissing(column, items, i, scratch, &text, bad)) return false;
      } else if (is_value) {
        text = items.Text(i, scratch);
        if (fields_.csv().trim) text = TrimBlanks(text);
      }
      if (fields_.KeepsInBag(column.index, text)) bag.push_back(text);
    }
    return fields_.FinishBag(column.index, row, bad);
  }

  static constexpr char kNanAdvice[] =
      "where a value is missing, write null instead of NaN, or list nan in the column's 'missing' "
      "in the schema";

  ArrowArrayStream* const stream_;
  ColumnFields fields_;
  std::vector<Column> columns_;  // of the table
  ArrowOwned<ArrowArray> batch_;
  int64_t first_ = 0, at_ = 0, batch_rows_ = 0;  // rows of the batch: its offset, the next, all
  int64_t row_ = 0;                              // of the stream
};

}  // namespace

std::unique_ptr<RowSource> MakeArrowSource(ArrowArrayStream* stream, const std::string& schema,
                                           const std::string& schema_name, Labels labels) {
  return std::make_unique<ArrowSource>(stream, CsvSchema::ReadText(schema, schema_name),
                                       schema_name, labels);
}

}  // namespace renzan
