#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "renzan/base/error.h"
#include "renzan/data/import.h"
#include "renzan/data/row_source.h"

namespace renzan {
namespace {

std::unique_ptr<RowParser> MakeParser(const ImportOptions& options) {
  const Labels labels = options.is_training_data() ? Labels::kRequired : Labels::kMayBeMissing;
  if (options.format == "criteo") {
    if (!options.schema.empty())
      Fail(ErrorCode::kUsage, "--schema is only for --format csv; Criteo's columns are fixed");
    return MakeCriteoParser(options.log_dense.value_or(true), labels);
  }
  if (options.format != "csv")
    Fail(ErrorCode::kUsage, "unknown format '{}': use criteo or csv", options.format);
  if (options.schema.empty())
    Fail(ErrorCode::kUsage,
         "--format csv needs --schema FILE, which describes each column (docs/formats/dataset.md)");
  if (options.log_dense.has_value())
    Fail(ErrorCode::kUsage,
         "--dense is only for --format criteo: in a schema each dense column has its own "
         "'transform' (transform: log)");
  return MakeCsvParser(options.schema, labels);
}

class TextSource : public RowSource {
 public:
  explicit TextSource(const ImportOptions& options)
      : inputs_(options.inputs), parser_(MakeParser(options)), lines_(inputs_, options.stop) {}

  void Begin() override { parser_->Begin(lines_); }
  const DatasetSchema& schema() const override { return parser_->schema(); }
  std::vector<double> unseen_shares() const override { return parser_->unseen_shares(); }
  std::vector<std::string> keys() const override { return parser_->keys(); }
  std::string SplitBy(const std::string& column) override { return parser_->SplitBy(column); }
  RowParser::Result Next(std::span<TextRow>* rows, BadRow* bad) override {
    *rows = {&row_, 1};
    return parser_->Next(lines_, &row_, bad);
  }

  std::string names() const override { return fmt::format("{}", fmt::join(inputs_, ", ")); }
  std::string name() const override { return lines_.file(); }
  std::string PlaceOf(int64_t line) const override {
    return fmt::format("{}:{}", lines_.file(), line);
  }
  std::string HowToSkip() const override { return "skip bad rows with --on-bad-row skip"; }
  void Report(ImportProgress* progress) const override {
    progress->text_bytes = lines_.text_bytes();
    progress->raw_bytes = lines_.raw_bytes();
    progress->total_raw_bytes = lines_.total_raw_bytes();
  }

 private:
  const std::vector<std::string> inputs_;
  std::unique_ptr<RowParser> parser_;
  LineReader lines_;
  TextRow row_;
};

}  // namespace

std::unique_ptr<RowSource> MakeTextSource(const ImportOptions& options) {
  if (options.inputs.empty()) Fail(ErrorCode::kUsage, "no input files; '-' reads standard input");
  return std::make_unique<TextSource>(options);
}

}  // namespace renzan
