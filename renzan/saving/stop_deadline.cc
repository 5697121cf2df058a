#include "renzan/saving/stop_deadline.h"

#include <algorithm>
#include <utility>

#include "renzan/observe/stop_notice.h"

namespace renzan {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

}  // namespace

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
