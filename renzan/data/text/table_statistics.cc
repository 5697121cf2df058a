#include "renzan/data/text/table_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/text/column_hints.h"
#include "renzan/data/text/csv_delimiter.h"
#include "renzan/data/text/csv_record.h"

namespace renzan {
namespace {

constexpr size_t kSniffedRecords = 200;
// If fewer records have the same number of fields, the file is not a table.
constexpr double kTableShare = 0.5;
constexpr int64_t kRowsBetweenStops = 4096;

using Record = std::vector<std::string>;

// The first records; one whose quotes are wrong has no fields.
std::vector<Record> FirstRecords(const ProposalOptions& options, const Dialect& dialect,
                                 bool trim = true) {
  LineReader lines({options.input}, options.stop);
  CsvRecordReader reader(dialect.delimiter, dialect.quotes, trim);
  std::vector<Record> records;
  std::string problem;
  int64_t line = 0;
  while (records.size() < kSniffedRecords && reader.Next(lines, &line, &problem)) {
    records.emplace_back();
    if (problem.empty())
      records.back().assign(reader.fields().begin(), reader.fields().end());
    else
      reader.RejectRecord(lines, [] { return true; });
  }
  std::erase_if(records,
                [](const Record& record) { return record.size() == 1 && record[0].empty(); });
  return records;
}

// The delimiter that gives most records the same number of fields.
Dialect FindDelimiter(const ProposalOptions& options) {
  Dialect best;
  for (const bool quotes : {true, false}) {
    for (const char* delimiter : kUsualDelimiters) {
      Dialect dialect{.delimiter = delimiter, .quotes = quotes};
      const std::vector<Record> records = FirstRecords(options, dialect);
      std::map<size_t, size_t> counts;
      for (const Record& record : records) ++counts[record.size()];
      for (const auto& [num_fields, count] : counts) {
        const double share = static_cast<double>(count) / static_cast<double>(records.size());
        if (num_fields < 2 || share < best.share ||
            (share == best.share && num_fields <= best.num_fields))
          continue;
        best = dialect;
        best.share = share;
        best.num_fields = num_fields;
      }
    }
  }
  return best;
}

// What is no name in the first record: a number, a date, a text that means missing, an empty one
// but the first, one that occurs twice, or a value that its column has elsewhere; "" if there is
// none. For people.
std::string UnlikeHeader(const std::vector<Record>& records) {
  const Record& first = records[0];
  std::set<std::string> seen;
  for (size_t i = 0; i < first.size(); ++i) {
    const std::string& text = first[i];
    const std::string shown = fmt::format("'{}'", Escape(ShortText(text, kShownBytes)));
    double number = 0;
    if (text.empty()) {
      if (i > 0) return fmt::format("its field {} is empty", i + 1);
      continue;
    }
    if (!seen.insert(text).second) return shown + " occurs twice in it";
    if (IsNumber(text, &number)) return shown + " is a number";
    ColumnStatistics statistics;
    statistics.Add(text);
    if (statistics.missing() > 0) return shown + " usually means missing";
    if (!statistics.date_format().empty()) return shown + " is a date";
    if (std::any_of(records.begin() + 1, records.end(),
                    [&](const Record& record) { return record[i] == text; }))
      return shown + " occurs below it, too";
  }
  return "";
}

// Whether more fields of the first record differ in type from the numbers and dates below them than
// are values like those below. Then the first record is a header, though some of it is unlike one.
bool HasOtherTypes(const std::vector<Record>& records) {
  const Record& first = records[0];
  size_t names = 0, values = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    ColumnStatistics above, below;
    above.Add(first[i]);
    for (size_t row = 1; row < records.size(); ++row) below.Add(records[row][i]);
    if (above.present() == 0 || below.present() == 0) continue;
    const auto is_value = [](const ColumnStatistics& column) {
      return column.is_number() || !column.date_format().empty();
    };
    if (is_value(below))
      ++(is_value(above) ? values : names);
    else
      values += std::any_of(records.begin() + 1, records.end(),
                            [&](const Record& record) { return record[i] == first[i]; });
  }
  return names > values;
}

Dialect FindDialect(const ProposalOptions& options) {
  Dialect dialect = FindDelimiter(options);
  std::vector<Record> records = FirstRecords(options, dialect);
  if (!records.empty() && dialect.share < kTableShare)
    Fail(ErrorCode::kData,
         "{}: no delimiter divides most lines into the same number of fields, at least two: is "
         "this a CSV or TSV file?",
         options.input);
  std::erase_if(records, [&](const Record& record) { return record.size() != dialect.num_fields; });
  if (records.empty()) Fail(ErrorCode::kData, "{} has no rows", options.input);
  dialect.unlike_header = UnlikeHeader(records);
  dialect.header = dialect.unlike_header.empty() || HasOtherTypes(records);
  for (const Record& record : FirstRecords(options, dialect, /*trim=*/false))
    for (const std::string& field : record) dialect.trim |= TrimBlanks(field) != field;
  for (size_t i = 0; i < dialect.num_fields; ++i)
    dialect.names.push_back(dialect.header ? records[0][i] : fmt::format("c{}", i + 1));
  return dialect;
}

}  // namespace

Table ReadTable(const ProposalOptions& options) {
  Table table{.dialect = FindDialect(options)};
  for (const std::string& name : table.dialect.names) table.columns.push_back({.name = name});
  LineReader lines({options.input}, options.stop);
  CsvRecordReader reader(table.dialect.delimiter, table.dialect.quotes, table.dialect.trim);
  std::string problem;
  int64_t line = 0;
  bool header = table.dialect.header;
  while (reader.Next(lines, &line, &problem)) {
    const std::vector<std::string_view>& fields = reader.fields();
    if (std::exchange(header, false)) continue;
    if (problem.empty() && fields.size() == 1 && fields[0].empty()) continue;
    if (!problem.empty() || fields.size() != table.columns.size()) {
      ++table.bad_rows;
      reader.RejectRecord(lines, [&] { return fields.size() == table.columns.size(); });
      continue;
    }
    if (table.rows == options.max_rows) {
      table.complete = false;
      break;
    }
    if (table.rows % kRowsBetweenStops == 0) ThrowIfStopped(options.stop);
    for (size_t i = 0; i < fields.size(); ++i) table.columns[i].values.Add(fields[i]);
    ++table.rows;
  }
  if (table.rows == 0) Fail(ErrorCode::kData, "{} has no rows", options.input);
  return table;
}

}  // namespace renzan
