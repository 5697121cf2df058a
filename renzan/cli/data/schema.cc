// renzan data schema FILE

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "renzan/cli/at_least.h"
#include "renzan/cli/data/verbs.h"
#include "renzan/cli/stop_signals.h"
#include "renzan/data/text/propose_schema.h"

namespace renzan {

void AddDataSchemaVerb(CLI::App& data) {
  CLI::App* verb =
      data.add_subcommand("schema", "Propose a schema for a CSV or TSV file, which you then edit");
  const auto options = std::make_shared<ProposalOptions>();
  verb->add_option("file", options->input, "Text, .gz or .zst")->required()->type_name("FILE");
  verb->add_option("--rows", options->max_rows, "How many rows to look at")
      ->check(AtLeast(1))
      ->capture_default_str();
  verb->footer(
      "Example:\n"
      "  renzan data schema clicks.csv.gz > schema.yaml\n"
      "  renzan data import clicks.csv.gz --format csv --schema schema.yaml --output data/clicks");
  verb->callback([options] {
    options->stop = StopOnSignals();
    fmt::print("{}", ProposeSchema(*options));
  });
}

}  // namespace renzan
