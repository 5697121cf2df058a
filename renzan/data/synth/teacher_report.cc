#include "renzan/data/synth/teacher_report.h"

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {

std::string TeacherReportPath(const std::string& file) { return file + ".synth.json"; }

void WriteTeacherReport(const std::string& file, int64_t rows, uint64_t seed, int64_t first_row,
                        const BayesOptimal& bayes_optimal) {
  const nlohmann::ordered_json report = {{"rows", rows},
                                         {"seed", seed},
                                         {"first_row", first_row},
                                         {"best_auc", bayes_optimal.best_auc},
                                         {"best_log_loss", bayes_optimal.best_log_loss}};
  WriteFileAtomically(TeacherReportPath(file), report.dump(2) + "\n");
}

std::optional<BayesOptimal> ReadTeacherReport(const std::string& file, int64_t rows) {
  const std::string path = TeacherReportPath(file);
  if (file == "-" || !FileExists(path)) return std::nullopt;
  BayesOptimal bayes_optimal;
  int64_t reported = 0;
  try {
    const nlohmann::json report = nlohmann::json::parse(ReadFile(path));
    reported = report.at("rows").get<int64_t>();
    bayes_optimal = {report.at("best_auc").get<double>(), report.at("best_log_loss").get<double>()};
  } catch (const nlohmann::json::exception& error) {
    Fail(ErrorCode::kData, "{}: not a report of `renzan data synth`: {}; remove it", path,
         error.what());
  }
  if (reported != rows)
    Fail(ErrorCode::kData,
         "{}: describes {} rows, but {} has {}; remove it or generate the file again", path,
         reported, file, rows);
  return bayes_optimal;
}

}  // namespace renzan
