#include "renzan/data/arrow/arrow_source.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/data/arrow/arrow_abi.h"
#include "renzan/data/arrow/arrow_column.h"
#include "renzan/data/text/column_fields.h"

namespace renzan {
namespace {

// What pandas calls a column that holds an index.
constexpr std::string_view kIndexName = "__index_level_";

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
    for (size_t i = 0; i < names.size(); ++i) {
      const std::optional<size_t> index = IndexOf(names[i]);
      if (!index)
        LogWarning("column '{}' of the table, an index of pandas, is skipped", Escape(names[i]));
      columns_.emplace_back(fields_, names[i], index, *schema->children[i]);
    }
    for (const ArrowColumn& column : columns_) column.CheckType();
    for (TextRow& row : rows_) fields_.Prepare(&row);
  }

  const DatasetSchema& schema() const override { return fields_.schema(); }
  std::vector<double> unseen_shares() const override { return fields_.unseen_shares(); }
  std::vector<std::string> keys() const override { return fields_.keys(); }

  std::string SplitBy(const std::string& name) override {
    const std::string format = fields_.SplitBy(name);
    const auto found = std::find_if(columns_.begin(), columns_.end(),
                                    [&](const ArrowColumn& other) { return other.name() == name; });
    CHECK(found != columns_.end());
    return found->SplitBy(format);
  }

  RowParser::Result Next(std::span<TextRow>* rows, BadRow* bad) override {
    if (bad_is_next_) return TakeBad(bad);
    while (at_ == batch_rows_)
      if (!NextBatch()) return RowParser::Result::kEnd;
    // Messages on the first row differ.
    const int64_t most = fields_.has_read_row() ? ArrowColumn::kMaxRows : 1;
    *rows = std::span(rows_).first(static_cast<size_t>(std::min(most, batch_rows_ - at_)));
    for (TextRow& row : *rows) {
      row.line = row_ + (&row - rows_.data());
      fields_.BeginRow(&row);
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].is_used()) continue;
      BadRow found;
      const size_t good = columns_[i].Take(first_ + at_, *rows, &found);
      if (good == rows->size()) continue;
      found.column = i + 1;
      found.name = columns_[i].name();
      found.line = row_ + static_cast<int64_t>(good);
      bad_ = std::move(found);
      bad_is_next_ = true;
      *rows = rows->first(good);
    }
    CheckLabels(rows);
    at_ += std::ssize(*rows);
    row_ += std::ssize(*rows);
    if (rows->empty()) return TakeBad(bad);
    fields_.HasReadRow();
    return RowParser::Result::kRow;
  }

  std::string names() const override { return "the table"; }
  std::string name() const override { return "the table"; }
  std::string PlaceOf(int64_t line) const override { return fmt::format("row {}", line); }
  std::string HowToSkip() const override { return "skip bad rows with on_bad_row=\"skip\""; }
  void Report(ImportProgress* /*progress*/) const override {}

 private:
  // Ends *rows before the first that has no label.
  void CheckLabels(std::span<TextRow>* rows) {
    if (!fields_.may_lack_labels()) return;
    BadRow found;
    for (size_t good = 0; good < rows->size(); ++good) {
      if (fields_.HasLabel((*rows)[good], &found)) continue;
      found.line = row_ + static_cast<int64_t>(good);
      bad_ = std::move(found);
      bad_is_next_ = true;
      *rows = rows->first(good);
      return;
    }
  }

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
    const CsvColumn& column = fields_.columns()[*IndexOf(lacked[0])];
    Fail(ErrorCode::kConfig, "the table has no column '{}', which {} declares{}", Escape(lacked[0]),
         fields_.name(),
         column.role == "label" ? fmt::format("; {}", kUnlabelledAdvice)
         : column.is_bag_weights()
             ? ": remove it there, or add it to the table, with a number for each value of its bag"
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
    for (size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].is_used()) columns_[i].Bind(batch_->children[i], first_ + batch_rows_);
    if (const int64_t nulls = NullRows(*batch_); nulls > 0)
      Fail(ErrorCode::kData, "after {} the stream has a batch with {} null", Counted(row_, "row"),
           nulls == 1 ? "a row that is" : fmt::format("{} rows that are", nulls));
    return true;
  }

  RowParser::Result TakeBad(BadRow* bad) {
    *bad = std::move(bad_);
    bad_is_next_ = false;
    ++at_;
    ++row_;
    return RowParser::Result::kBadRow;
  }

  ArrowArrayStream* const stream_;
  ColumnFields fields_;
  std::vector<ArrowColumn> columns_;  // of the table
  std::vector<TextRow> rows_ = std::vector<TextRow>(ArrowColumn::kMaxRows);
  BadRow bad_;  // if bad_is_next_
  bool bad_is_next_ = false;
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
