#include "renzan/observe/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "renzan/base/duration.h"

namespace renzan {
namespace {

constexpr int kMinBarWidth = 8, kMaxBarWidth = 40;

double Fraction(const Progress& progress) {
  if (progress.steps <= 0) return 0;
  return std::clamp(static_cast<double>(progress.step) / static_cast<double>(progress.steps), 0.0,
                    1.0);
}

// Rounded down, so that 100 % is shown only at the end.
int Percent(const Progress& progress) {
  return static_cast<int>(std::floor(Fraction(progress) * 100));
}

std::string RateText(double rate) {
  if (rate >= 1e6) return fmt::format("{:.2f}M", rate / 1e6);
  if (rate >= 1e3) return fmt::format("{:.1f}k", rate / 1e3);
  return fmt::format("{:.0f}", rate);
}

std::string Numbers(const Progress& progress, bool with_measured) {
  std::string text;
  if (with_measured && !std::isnan(progress.loss))
    text += fmt::format("  {}loss {:.4f}", progress.output.empty() ? "" : progress.output + ": ",
                        progress.loss);
  if (with_measured && !std::isnan(progress.auc)) text += fmt::format("  AUC {:.4f}", progress.auc);
  if (with_measured && !std::isnan(progress.rmse))
    text += fmt::format("  RMSE {:.4f}", progress.rmse);
  if (!std::isnan(progress.samples_per_second))
    text += fmt::format("  {} samples/s", RateText(progress.samples_per_second));
  if (!std::isnan(progress.eta_seconds))
    text += fmt::format("  ETA {}", SecondsText(progress.eta_seconds));
  return text;
}

}  // namespace

std::string SecondsText(double seconds) {
  if (!(seconds < 1e9)) return "?";
  return FormatDuration(static_cast<int64_t>(std::max(seconds, 0.0) + 0.5));
}

std::string ProgressLine(const Progress& progress) {
  return fmt::format("step {}/{} ({}%){}", progress.step, progress.steps, Percent(progress),
                     Numbers(progress, progress.measured_at == progress.step));
}

std::string ProgressBar(const Progress& progress, int width) {
  const std::string percent = fmt::format("{:3}% ", Percent(progress));
  std::string rest =
      fmt::format(" {}/{}{}", progress.step, progress.steps, Numbers(progress, true));
  const int room = width - static_cast<int>(percent.size() + rest.size()) - 2;
  const std::string bar = room >= kMinBarWidth
                              ? BarText(Fraction(progress), std::min(room, kMaxBarWidth))
                              : std::string();
  std::string line = percent + bar + rest;
  line.resize(std::min(line.size(), static_cast<size_t>(std::max(width, 0))));
  return line;
}

void ProgressDisplay::Update(const Progress& progress, double now) {
  bool insist = progress.step >= progress.steps && progress.step != shown_step_;
  if (!is_terminal_) {
    const auto is_recent = [now](double then) { return now - then < LiveLine::kPlainInterval; };
    const bool is_measured = progress.measured_at == progress.step;
    if (is_measured) measured_at_ = now;
    if (!is_measured && !insist && is_recent(measured_at_)) return;
    insist |= is_measured && !is_recent(printed_at_);
    if (insist && is_measured) printed_at_ = now;
  }
  const auto shown = [&](std::string text) {
    shown_step_ = progress.step;
    return text;
  };
  line_.Update(
      now, insist, [&](int width) { return shown(ProgressBar(progress, width)); },
      [&] { return shown(ProgressLine(progress)); });
}

}  // namespace renzan
