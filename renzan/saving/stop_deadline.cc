#include "renzan/saving/stop_deadline.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/log.h"

namespace renzan {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

}  // namespace

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

StopDeadline::StopDeadline(std::string notice_path, double grace_seconds, const Clock& clock)
    : notice_path_(std::move(notice_path)), grace_seconds_(grace_seconds), clock_(clock) {}

std::optional<double> StopDeadline::Noticed() const {
  if (notice_path_.empty()) return std::nullopt;
  const std::optional<double> deadline = ReadStopDeadline(notice_path_);
  if (!deadline) return std::nullopt;
  const double left = *deadline - clock_.UnixSeconds();
  // Otherwise we would have been killed: it is of an earlier stop.
  if (left <= 0) return std::nullopt;
  return clock_.MonotonicSeconds() + left;
}

void StopDeadline::Begin() {
  const double by_grace =
      grace_seconds_ > 0 ? clock_.MonotonicSeconds() + grace_seconds_ : kUnknown;
  deadline_ = Noticed().value_or(by_grace);
}

void StopDeadline::Update() { deadline_ = std::min(deadline_, Noticed().value_or(kUnknown)); }

double StopDeadline::SecondsLeft() const { return deadline_ - clock_.MonotonicSeconds(); }

}  // namespace renzan
