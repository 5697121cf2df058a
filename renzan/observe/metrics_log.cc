#include "renzan/observe/metrics_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

// A line of an evaluation has no other scalars.
bool IsEvaluation(const Json& record) {
  for (const auto& [tag, value] : record.items())
    if (tag.starts_with("eval/")) return true;
  return false;
}

// The lines of `text` that belong to steps before `next`.
std::string LinesBefore(const std::string& text, const MetricsLog::Next& next,
                        const std::string& path) {
  std::string kept;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string line = text.substr(begin, end - begin);
    ++line_number;
    try {
      const Json record = Json::parse(line);
      const bool evaluation = IsEvaluation(record);
      if (record.at("step").get<int64_t>() < (evaluation ? next.evaluation : next.training))
        kept += line + "\n";
    } catch (const Json::exception&) {
      Fail(ErrorCode::kData, "{}:{}: not a line of metrics: move the file away to start a new one",
           path, line_number);
    }
    begin = end + 1;
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, Next next) {
  if (FileExists(path)) {
    const std::string text = ReadFile(path);
    const std::string kept = LinesBefore(text, next, path);
    if (kept != text) WriteFileAtomically(path, kept);
  }
  file_.emplace(path);
}

void MetricsLog::Add(const ScalarRecord& record) {
  Json line = {{"step", record.step}, {"time", record.unix_seconds}};
  for (const Scalar& scalar : record.scalars)
    line[scalar.tag] = std::isfinite(scalar.value) ? Json(scalar.value) : Json(nullptr);
  file_->Append(line.dump() + "\n");
}

}  // namespace renzan
