#include "renzan/cli/data/parquet_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "renzan/base/build_id.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/plugin.h"
#include "renzan/data/arrow/arrow_abi.h"
#include "renzan/data/arrow/arrow_source.h"
#include "renzan/data/import.h"
#include "renzan/data/parquet/reader/library.h"
#include "renzan/data/row_split.h"
#include "renzan/data/text/csv_schema.h"

namespace renzan {
namespace {

constexpr Plugin kParquetPlugin = {
    .file = "librenzan_parquet.so",
    .build = "renzan_parquet_build",
    .code = ErrorCode::kConfig,
    .what = "the library that reads Parquet",
    .advice =
        "this renzan was built without Arrow's C++, or the library is not installed beside it. "
        "`python3 -m renzan.data import FILES "
        "--schema FILE --output DIR` makes the same dataset; or install libarrow-dev and "
        "libparquet-dev (21 or later) and build renzan again"};

class ParquetSource : public RowSource {
 public:
  explicit ParquetSource(const ImportOptions& options) : paths_(options.inputs) {
    const CsvSchema described = CsvSchema::ReadFile(options.schema);
    std::string split;
    if (!options.split.empty()) split = RowSplit(options.split, 0).column();
    const ParquetFiles files{
        .paths = paths_, .uses = [&](const std::vector<std::string>& names) {
          CsvSchema csv = described;
          csv.ExpandPatterns(names, options.schema);
          std::vector<bool> used;
          for (const std::string& name : names)
            used.push_back(name == split || std::any_of(csv.columns.begin(), csv.columns.end(),
                                                        [&](const CsvColumn& column) {
                                                          return column.name == name &&
                                                                 column.role != "skip";
                                                        }));
          return used;
        }};
    void* const library = LoadPlugin(kParquetPlugin, PathOfPlugin(kParquetPlugin), BuildId());
    const auto open = reinterpret_cast<decltype(&renzan_parquet_open)>(
        FunctionOfPlugin(library, "renzan_parquet_open"));
    open(&files, stream_.Out(), &rows_of_files_);
    rows_ = MakeArrowSource(stream_.get(), ReadFile(options.schema), options.schema,
                            options.is_training_data() ? Labels::kRequired : Labels::kMayBeMissing);
  }

  void Begin() override {
    try {
      rows_->Begin();
    } catch (const Error& error) {
      throw error.WithContext(paths_[0]);
    }
  }
  const DatasetSchema& schema() const override { return rows_->schema(); }
  std::vector<double> unseen_shares() const override { return rows_->unseen_shares(); }
  std::vector<std::string> keys() const override { return rows_->keys(); }
  std::string SplitBy(const std::string& column) override { return rows_->SplitBy(column); }

  // Rows are counted in each file. Those of one call are of one file.
  RowParser::Result Next(std::span<TextRow>* rows, BadRow* bad) override {
    const RowParser::Result result = rows_->Next(rows, bad);
    if (result == RowParser::Result::kEnd) return result;
    const bool is_bad = result == RowParser::Result::kBadRow;
    const int64_t line = is_bad ? bad->line : rows->front().line;
    while (line - first_ >= rows_of_files_[file_]) {
      first_ += rows_of_files_[file_++];
      CHECK(file_ < rows_of_files_.size());
    }
    if (is_bad) {
      bad->line -= first_;
    } else {
      for (TextRow& row : *rows) row.line -= first_;
    }
    return result;
  }

  std::string names() const override { return fmt::format("{}", fmt::join(paths_, ", ")); }
  std::string name() const override { return paths_[file_]; }
  std::string PlaceOf(int64_t line) const override {
    return fmt::format("{}: row {}", paths_[file_], line);
  }
  std::string HowToSkip() const override { return "skip bad rows with --on-bad-row skip"; }
  void Report(ImportProgress* /*progress*/) const override {}

 private:
  const std::vector<std::string> paths_;
  ArrowOwned<ArrowArrayStream> stream_;
  std::vector<int64_t> rows_of_files_;
  std::unique_ptr<RowSource> rows_;
  size_t file_ = 0;    // of the last rows
  int64_t first_ = 0;  // its first row, of those of all files
};

}  // namespace

std::unique_ptr<RowSource> MakeParquetSource(const ImportOptions& options) {
  if (options.schema.empty())
    Fail(ErrorCode::kUsage,
         "--format parquet needs --schema FILE, which describes each column "
         "(docs/formats/dataset.md)");
  if (options.log_dense.has_value())
    Fail(ErrorCode::kUsage,
         "--dense is only for --format criteo: in a schema each dense column has its own "
         "'transform' (transform: log)");
  for (const std::string& path : options.inputs) {
    if (path == "-")
      Fail(ErrorCode::kUsage,
           "--format parquet needs files: Parquet cannot be read from standard input");
    if (!FileExists(path)) Fail(ErrorCode::kNoInput, "{}: no such file on this machine", path);
  }
  return std::make_unique<ParquetSource>(options);
}

}  // namespace renzan
