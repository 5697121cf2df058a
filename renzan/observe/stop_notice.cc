#include "renzan/observe/stop_notice.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"

namespace renzan {

std::optional<double> ReadStopDeadline(const std::string& path) {
  try {
    if (!FileExists(path)) return std::nullopt;
    const double deadline = nlohmann::json::parse(ReadFile(path)).at("deadline").get<double>();
    if (std::isfinite(deadline)) return deadline;
    LogWarning("{} is ignored: its deadline is not finite", path);
  } catch (const Error& error) {
    LogWarning("the deadline of this stop is unknown: {}", error.what());
  } catch (const nlohmann::json::exception& error) {
    LogWarning("{} is ignored: {}", path, error.what());
  }
  return std::nullopt;
}

}  // namespace renzan
