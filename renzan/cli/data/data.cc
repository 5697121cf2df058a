// renzan data import|schema|synth|inspect|verify

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>

#include "renzan/cli/data/verbs.h"
#include "renzan/cli/verbs.h"

namespace renzan {
namespace {

constexpr int kBarWidth = 30;

}  // namespace

DataProgress::DataProgress(const Clock& clock, std::string what)
    : clock_(clock),
      what_(std::move(what)),
      start_(clock.MonotonicSeconds()),
      line_(STDERR_FILENO, ::isatty(STDERR_FILENO) == 1) {
  line_.Postpone(start_);
}

DataProgress::~DataProgress() { line_.Clear(); }

void DataProgress::Update(double fraction, const std::string& text) {
  const std::string percent =
      fraction < 0 ? "" : fmt::format("{:3.0f} % ", 100 * std::min(fraction, 1.0));
  line_.Update(
      clock_.MonotonicSeconds(), /*insist=*/false,
      [&](int width) {
        const std::string bar = fraction < 0 ? "" : BarText(fraction, kBarWidth) + " ";
        return fmt::format("{} {}{}{}", what_, bar, percent, text)
            .substr(0, static_cast<size_t>(width));
      },
      [&] { return fmt::format("{}: {}{}", what_, percent, text); });
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
  AddDataSchemaVerb(*data);
  AddDataSynthVerb(*data);
  AddDataInspectVerb(*data);
  AddDataVerifyVerb(*data);
}

}  // namespace renzan
