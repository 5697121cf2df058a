// renzan data import|synth|inspect|verify

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cli/data/verbs.h"
#include "renzan/cli/verbs.h"

namespace renzan {
namespace {

constexpr double kSecondsBetweenBars = 0.2, kSecondsBetweenLines = 10;
constexpr int kBarWidth = 30;

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler writes it

}  // namespace

StopFunction StopOnSignals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested = true; };
  // Without SA_RESTART a read that waits for input returns, and the request is seen.
  for (int number : {SIGINT, SIGTERM}) ::sigaction(number, &action, nullptr);
  return [] { return stop_requested.load(); };
}

DataProgress::DataProgress(const Clock& clock, std::string what)
    : clock_(clock),
      what_(std::move(what)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(clock.MonotonicSeconds()),
      last_(start_) {}

DataProgress::~DataProgress() {
  if (bar_shown_) fmt::print(stderr, "\r\x1b[K");
}

void DataProgress::Update(double fraction, const std::string& text) {
  const double now = clock_.MonotonicSeconds();
  if (now - last_ < (terminal_ ? kSecondsBetweenBars : kSecondsBetweenLines)) return;
  last_ = now;
  const std::string percent =
      fraction < 0 ? "" : fmt::format("{:3.0f} % ", 100 * std::min(fraction, 1.0));
  if (!terminal_) {
    LogInfo("{}: {}{}", what_, percent, text);
    return;
  }
  const int filled = static_cast<int>(kBarWidth * std::clamp(fraction, 0.0, 1.0));
  const std::string bar =
      fraction < 0 ? "" : fmt::format("[{:=<{}}{: <{}}] ", "", filled, "", kBarWidth - filled);
  fmt::print(stderr, "\r\x1b[K{} {}{}{}", what_, bar, percent, text);
  std::fflush(stderr);
  bar_shown_ = true;
}

void AddDataVerb(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Import, generate, inspect and verify datasets");
  data->require_subcommand(1);
  data->footer(
      "Example:\n"
      "  renzan data synth --rows 100000 --output clicks.tsv.gz\n"
      "  renzan data import clicks.tsv.gz --output data/clicks\n"
      "  renzan data inspect data/clicks");
  AddDataImportVerb(*data);
  AddDataSynthVerb(*data);
  AddDataInspectVerb(*data);
  AddDataVerifyVerb(*data);
}

}  // namespace renzan
