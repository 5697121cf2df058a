#include "renzan/data/arrow/arrow_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/base/config/config.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/log.h"
#include "renzan/data/arrow/arrow_abi.h"
#include "renzan/data/arrow/arrow_alike.h"
#include "renzan/data/arrow/arrow_column.h"
#include "renzan/data/arrow/arrow_stream.h"
#include "renzan/data/text/column_fields.h"

namespace renzan {
namespace {

// What pandas calls a column that holds an index.
constexpr std::string_view kIndexName = "__index_level_";

class ArrowSource : public RowSource {
 public:
  ArrowSource(const std::vector<ArrowInput>& inputs, CsvSchema schema,
              const std::string& schema_name, Labels labels)
      : fields_(std::move(schema), schema_name, labels) {
    CHECK(!inputs.empty());
    for (const ArrowInput& input : inputs) streams_.emplace_back(input.stream, input.name);
  }

  void Begin() override {
    for (ArrowStream& stream : streams_) stream.Open();
    InContext(streams_[0], [&] {
      fields_.Begin(&streams_[0].names());
      CheckNames(streams_[0].names());
    });
    for (const std::string& name : streams_[0].names())
      if (!IndexOf(name))
        LogWarning("{}column '{}' of the table, an index of pandas, is skipped",
                   streams_[0].prefix(), Escape(name));
    for (const ArrowStream& stream : streams_) CheckSameNames(stream);
    // Of all streams, before any is read.
    for (const ArrowStream& stream : streams_) {
      std::vector<ArrowColumn> columns = ColumnsOf(stream);
      InContext(stream, [&] {
        for (const ArrowColumn& column : columns) column.CheckType();
      });
      if (&stream == &streams_[0]) columns_ = std::move(columns);
    }
    for (const ArrowColumn& column : columns_)
      if (column.is_used()) CheckAlike(column.name());
    for (TextRow& row : rows_) fields_.Prepare(&row);
  }

  const DatasetSchema& schema() const override { return fields_.schema(); }
  std::vector<double> unseen_shares() const override { return fields_.unseen_shares(); }
  std::vector<std::string> keys() const override { return fields_.keys(); }

  std::string SplitBy(const std::string& name) override {
    const std::string format = fields_.SplitBy(name);
    CheckAlike(name);
    // A column of nulls does not say what the others hold.
    const auto known =
        std::find_if(streams_.begin(), streams_.end(), [&](const ArrowStream& stream) {
          return !IsOnlyNull(ArrowType::Of(stream.FieldOf(name)));
        });
    const ArrowStream& stream = known == streams_.end() ? streams_[0] : *known;
    std::string by;
    InContext(stream, [&] {
      by = ArrowColumn(fields_, name, IndexOf(name), stream.FieldOf(name)).SplitBy(format);
    });
    split_ = {name, format};
    columns_ = ColumnsOf(streams_[0]);
    return by;
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
      size_t good = 0;
      InContext(streams_[stream_], [&] { good = columns_[i].Take(first_ + at_, *rows, &found); });
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

  std::string names() const override {
    std::vector<std::string> names;
    for (const ArrowStream& stream : streams_) names.push_back(stream.name());
    return fmt::format("{}", fmt::join(names, ", "));
  }
  std::string name() const override { return streams_[stream_].name(); }
  std::string PlaceOf(int64_t line) const override {
    return fmt::format("{}row {}", streams_[stream_].prefix(), line);
  }
  std::string HowToSkip() const override {
    return fmt::format("skip bad rows with {}",
                       streams_[0].is_file() ? "--on-bad-row skip" : "on_bad_row=\"skip\"");
  }
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

  // With the file's name before what goes wrong in `check`.
  template <typename Check>
  static void InContext(const ArrowStream& stream, const Check& check) {
    try {
      check();
    } catch (const Error& error) {
      if (!stream.is_file()) throw;
      throw error.WithContext(stream.name());
    }
  }

  std::vector<ArrowColumn> ColumnsOf(const ArrowStream& stream) {
    std::vector<ArrowColumn> columns;
    for (size_t i = 0; i < stream.names().size(); ++i) {
      const std::string& name = stream.names()[i];
      columns.emplace_back(fields_, name, IndexOf(name), stream.field(i));
      if (split_ && split_->column == name) columns.back().SplitBy(split_->format);
    }
    return columns;
  }

  void CheckNames(const std::vector<std::string>& names) const {
    const std::vector<std::string> lacked = fields_.NamesLackedBy(names);
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string& name = names[i];
      CheckOnce(name, names);
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

  static void CheckOnce(const std::string& name, const std::vector<std::string>& names) {
    if (std::count(names.begin(), names.end(), name) > 1)
      Fail(ErrorCode::kData, "the table has more than one column '{}': rename all but one",
           Escape(name));
  }

  // Its columns must be those of the first stream, in any order.
  void CheckSameNames(const ArrowStream& stream) const {
    const ArrowStream& first = streams_[0];
    if (stream.names() == first.names()) return;  // often, and there may be thousands
    InContext(stream, [&] {
      for (const std::string& name : stream.names()) CheckOnce(name, stream.names());
    });
    const auto check = [&](const ArrowStream& has, const ArrowStream& lacks, bool is_lacked) {
      for (const std::string& name : has.names()) {
        const std::vector<std::string>& names = lacks.names();
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        if (!IndexOf(name) && name.starts_with(kIndexName)) continue;
        Fail(ErrorCode::kData,
             "{}: {} the column '{}', which {} {}: give all files the same columns", stream.name(),
             is_lacked ? "lacks" : "has", Escape(name), first.name(), is_lacked ? "has" : "lacks");
      }
    };
    check(first, stream, true);
    check(stream, first, false);
  }

  // The types of a column, in all streams.
  void CheckAlike(const std::string& name) const {
    const ArrowStream* known = nullptr;  // the first whose type is not of nulls only
    std::optional<ArrowType> type;
    for (const ArrowStream& stream : streams_) {
      ArrowType other = ArrowType::Of(stream.FieldOf(name));
      if (type && !ReadsAlike(*type, other))
        Fail(ErrorCode::kData,
             "{}: column '{}' has the type {}, and {} in {}: write them again with one type, so "
             "that the same value is the same in all files",
             stream.name(), Escape(name), DescribeType(other), DescribeType(*type), known->name());
      if (type && !IsOnlyNull(*type)) continue;
      type = std::move(other);
      known = &stream;
    }
  }

  // Of a column of the schema file.
  std::optional<size_t> IndexOf(std::string_view name) const {
    const std::vector<CsvColumn>& columns = fields_.columns();
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const CsvColumn& column) { return column.name == name; });
    if (found == columns.end()) return std::nullopt;
    return static_cast<size_t>(found - columns.begin());
  }

  bool NextBatch() {
    while (!streams_[stream_].Next()) {
      if (stream_ + 1 == streams_.size()) return false;
      columns_ = ColumnsOf(streams_[++stream_]);
      row_ = 0;
    }
    const ArrowArray& batch = streams_[stream_].batch();
    at_ = 0;
    batch_rows_ = batch.length;
    first_ = batch.offset;
    InContext(streams_[stream_], [&] {
      for (size_t i = 0; i < columns_.size(); ++i)
        if (columns_[i].is_used()) columns_[i].Bind(batch.children[i], first_ + batch_rows_);
    });
    streams_[stream_].CheckRows();
    return true;
  }

  RowParser::Result TakeBad(BadRow* bad) {
    *bad = std::move(bad_);
    bad_is_next_ = false;
    ++at_;
    ++row_;
    return RowParser::Result::kBadRow;
  }

  struct Split {
    std::string column, format;
  };

  std::deque<ArrowStream> streams_;  // none is moved
  ColumnFields fields_;
  std::optional<Split> split_;
  size_t stream_ = 0;                 // of the last rows
  std::vector<ArrowColumn> columns_;  // of this stream
  std::vector<TextRow> rows_ = std::vector<TextRow>(ArrowColumn::kMaxRows);
  BadRow bad_;  // if bad_is_next_
  bool bad_is_next_ = false;
  int64_t first_ = 0, at_ = 0, batch_rows_ = 0;  // rows of the batch: its offset, the next, all
  int64_t row_ = 0;                              // of the stream
};

}  // namespace

std::unique_ptr<RowSource> MakeArrowSource(const std::vector<ArrowInput>& inputs,
                                           const std::string& schema,
                                           const std::string& schema_name, Labels labels) {
  return std::make_unique<ArrowSource>(inputs, CsvSchema::ReadText(schema, schema_name),
                                       schema_name, labels);
}

std::unique_ptr<RowSource> MakeArrowSource(ArrowArrayStream* stream, const std::string& schema,
                                           const std::string& schema_name, Labels labels) {
  return MakeArrowSource({{.stream = stream}}, schema, schema_name, labels);
}

}  // namespace renzan
