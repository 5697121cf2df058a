// renzan data synth --output FILE|DIR

#include "renzan/data/synth/synth.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/data/verbs.h"
#include "renzan/cli/stop_signals.h"
#include "renzan/cli/text/one_of.h"

namespace renzan {
namespace {

void Synth(SynthOptions options) {
  options.stop = StopOnSignals();
  SynthResult result;
  {
    DataProgress bar(SystemClock(), "generating");
    options.progress = [&](int64_t rows) {
      bar.Update(static_cast<double>(rows) / static_cast<double>(options.rows),
                 Counted(rows, "row"));
    };
    result = Synthesize(options);
  }
  fmt::print("{}: {}, label rate {:.4f}\nBayes-optimal AUC {:.5f}, log loss {:.5f}\n",
             options.output, Counted(options.rows, "row"), result.label_rate,
             result.bayes_optimal.best_auc, result.bayes_optimal.best_log_loss);
}

}  // namespace

void AddDataSynthVerb(CLI::App& data) {
  CLI::App* verb = data.add_subcommand("synth", "Generate data with a known Bayes-optimal AUC");
  const auto options = std::make_shared<SynthOptions>();
  TeacherOptions& teacher = options->teacher;
  verb->add_option(
          "-o,--output", options->output,
          "File to create (.gz and .zst are compressed), or directory with --format dataset")
      ->required()
      ->type_name("PATH");
  verb->add_option("--rows", options->rows, "Number of rows")
      ->check(AtLeast(1))
      ->capture_default_str();
  verb->add_option("--first-row", options->first_row,
                   "First row in the seed's stream: disjoint ranges are training and test sets of "
                   "the same teacher model")
      ->check(AtLeast(0))
      ->capture_default_str();
  verb->add_option("--seed", teacher.seed, "The same seed gives the same bytes")
      ->capture_default_str();
  verb->add_option("--format", options->format, "criteo (TSV) or dataset")
      ->check(OneOf({"criteo", "dataset"}))
      ->capture_default_str();
  verb->add_option("--features", teacher.num_one_hot, "One-hot features (format dataset)")
      ->check(AtLeast(0))
      ->capture_default_str();
  verb->add_option("--multi-hot", teacher.num_multi_hot, "Multi-hot features (format dataset)")
      ->check(AtLeast(0))
      ->capture_default_str();
  verb->add_option("--rows-per-table", teacher.rows_per_table,
                   "Number of values of the largest feature; the smallest has 4")
      ->check(AtLeast(1))
      ->capture_default_str();
  verb->add_option("--shard-rows", options->shard_rows, "Rows per shard (format dataset)")
      ->check(AtLeast(1))
      ->capture_default_str();
  verb->footer(
      "Example:\n"
      "  renzan data synth --rows 1000000 --seed 1 --output train.tsv.gz\n"
      "  renzan data synth --rows 100000 --seed 1 --first-row 1000000 --output test.tsv.gz\n"
      "  renzan data synth --rows 100000 --format dataset --multi-hot 3 --output data/synth");
  verb->callback([options] { Synth(*options); });
}

}  // namespace renzan
