#include "renzan/cli/data/parquet_source.h"

#include <algorithm>
#include <deque>
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
        "Install the Python package (`scripts/wheel && pip install build/wheel/renzan-*.whl "
        "pyarrow`), whose `python3 -m renzan.data` makes the same dataset; or install libarrow-dev "
        "and libparquet-dev (21 or later) and build renzan again"};

class ParquetReader {
 public:
  ParquetReader()
      : open_(reinterpret_cast<decltype(&renzan_parquet_open)>(
            FunctionOfPlugin(LoadPlugin(kParquetPlugin, PathOfPlugin(kParquetPlugin), BuildId()),
                             "renzan_parquet_open"))) {}
  void Open(const ParquetFile& file, ArrowArrayStream* stream) const { open_(&file, stream); }

 private:
  decltype(&renzan_parquet_open) open_;
};

// Keeps the streams of the files, which `rows_` reads.
class ParquetSource : public RowSource {
 public:
  explicit ParquetSource(const ImportOptions& options) {
    CsvSchema csv = CsvSchema::ReadFile(options.schema);
    bool is_expanded = false;  // by the first file, whose columns the others have
    std::string split;
    if (!options.split.empty()) split = RowSplit(options.split, 0).column();
    const auto uses = [&](const std::vector<std::string>& names) {
      if (!std::exchange(is_expanded, true)) csv.ExpandPatterns(names, options.schema);
      std::vector<bool> used;
      for (const std::string& name : names)
        used.push_back(name == split || std::any_of(csv.columns.begin(), csv.columns.end(),
                                                    [&](const CsvColumn& column) {
                                                      return column.name == name &&
                                                             column.role != "skip";
                                                    }));
      return used;
    };
    const ParquetReader reader;
    std::vector<ArrowInput> inputs;
    for (const std::string& path : options.inputs) {
      reader.Open({path, uses}, streams_.emplace_back().Out());
      inputs.push_back({streams_.back().get(), path});
    }
    rows_ = MakeArrowSource(inputs, ReadFile(options.schema), options.schema,
                            options.is_training_data() ? Labels::kRequired : Labels::kMayBeMissing);
  }

  void Begin() override { rows_->Begin(); }
  const DatasetSchema& schema() const override { return rows_->schema(); }
  std::vector<double> unseen_shares() const override { return rows_->unseen_shares(); }
  std::vector<std::string> keys() const override { return rows_->keys(); }
  std::string SplitBy(const std::string& column) override { return rows_->SplitBy(column); }
  RowParser::Result Next(std::span<TextRow>* rows, BadRow* bad) override {
    return rows_->Next(rows, bad);
  }
  std::string names() const override { return rows_->names(); }
  std::string name() const override { return rows_->name(); }
  std::string PlaceOf(int64_t line) const override { return rows_->PlaceOf(line); }
  std::string HowToSkip() const override { return rows_->HowToSkip(); }
  void Report(ImportProgress* progress) const override { rows_->Report(progress); }

 private:
  std::deque<ArrowOwned<ArrowArrayStream>> streams_;  // none is moved
  std::unique_ptr<RowSource> rows_;
};

void CheckFile(const std::string& path) {
  if (path == "-")
    Fail(ErrorCode::kUsage,
         "Parquet cannot be read from standard input: write it to a file, and give that");
  if (!FileExists(path)) Fail(ErrorCode::kNoInput, "{}: no such file on this machine", path);
}

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
  for (const std::string& path : options.inputs) CheckFile(path);
  return std::make_unique<ParquetSource>(options);
}

}  // namespace renzan
