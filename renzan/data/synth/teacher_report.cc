#include "renzan/data/synth/teacher_report.h"

#include <cmath>
#include <limits>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

// The file is JSON, which is YAML too.
struct Report {
  int64_t rows = -1;
  uint64_t seed = 0;
  int64_t first_row = 0;
  BayesOptimal bayes_optimal = {std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::quiet_NaN()};
  void Describe(ConfigFields& fields) {
    fields.Field("rows", &rows);
    fields.Field("seed", &seed);
    fields.Field("first_row", &first_row);
    fields.Field("best_auc", &bayes_optimal.best_auc);
    fields.Field("best_log_loss", &bayes_optimal.best_log_loss);
    fields.Require(rows >= 0, "rows", "is missing or negative");
    fields.Require(std::isfinite(bayes_optimal.best_auc), "best_auc", "is missing or not finite");
    fields.Require(std::isfinite(bayes_optimal.best_log_loss), "best_log_loss",
                   "is missing or not finite");
  }
};

}  // namespace

std::string TeacherReportPath(const std::string& file) { return file + ".synth.json"; }

void WriteTeacherReport(const std::string& file, int64_t rows, uint64_t seed, int64_t first_row,
                        const BayesOptimal& bayes_optimal) {
  WriteFileAtomically(
      TeacherReportPath(file),
      fmt::format("{{\n  \"rows\": {},\n  \"seed\": {},\n  \"first_row\": {},\n"
                  "  \"best_auc\": {},\n  \"best_log_loss\": {}\n}}\n",
                  rows, seed, first_row, bayes_optimal.best_auc, bayes_optimal.best_log_loss));
}

std::optional<BayesOptimal> ReadTeacherReport(const std::string& file, int64_t rows) {
  const std::string path = TeacherReportPath(file);
  if (file == "-" || !FileExists(path)) return std::nullopt;
  Report report;
  try {
    ReadConfigFile(path, {}, [&](ConfigFields& fields) { report.Describe(fields); });
  } catch (const Error& error) {
    Fail(ErrorCode::kData, "not a report of `renzan data synth`: {}; remove it", error.what());
  }
  if (report.rows != rows)
    Fail(ErrorCode::kData, "{}: describes {}, but {} has {}; remove it or generate the file again",
         path, Counted(report.rows, "row"), file, rows);
  return report.bayes_optimal;
}

}  // namespace renzan
