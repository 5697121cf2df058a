// renzan data import FILES... --output DIR

#include "renzan/data/import.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/cli/at_least.h"
#include "renzan/cli/data/parquet_source.h"
#include "renzan/cli/data/verbs.h"
#include "renzan/cli/stop_signals.h"
#include "renzan/cli/text/one_of.h"
#include "renzan/data/text/parse_number.h"
#include "renzan/data/vocabulary.h"

namespace renzan {
namespace {

struct Flags {
  ImportOptions options;
  std::string dense;  // empty unless given
  std::string on_bad_row = "error";
};

void PrintLabels(const ImportSummary& done) {
  if (done.label_name.empty()) {
    fmt::print("no labels: for predictions only\n");
    return;
  }
  const LabelSummary& label = done.label;
  if (label.numbers)
    fmt::print("label '{}': {}\n", done.label_name, Describe(*label.numbers));
  else
    fmt::print("label '{}': 1 in {} of {} ({:.4g} %)\n", done.label_name, label.positive_rows,
               Counted(label.rows, "row"),
               100 * static_cast<double>(label.positive_rows) /
                   static_cast<double>(std::max<int64_t>(label.rows, 1)));
  for (const FurtherLabelSummary& further : done.further_labels)
    fmt::print("{}\n", Describe(further));
  if (label.other_rows == 0) return;
  std::vector<std::string> texts;
  for (const LabelSummary::Text& other : label.other_texts)
    texts.push_back(fmt::format("'{}' ({})", Escape(ShortText(other.text, 40)), other.rows));
  fmt::print("label '{}': 0 in {} because of negative: other; the most frequent texts: {}\n",
             done.label_name, Counted(label.other_rows, "row"), fmt::join(texts, ", "));
}

void PrintNegatives(const ImportSummary& done, const ImportOptions& options) {
  const int64_t kept = done.label.rows - done.label.positive_rows;
  if (options.keep_negatives)
    fmt::print("kept {} of {} with label 0 (--keep-negatives {})\n", kept,
               Counted(kept + done.dropped_rows, "row"), *options.keep_negatives);
  if (done.negatives_kept != 1)
    fmt::print(
        "the data hold {:.4g} of the population's rows with label 0 (negatives_kept): predict and "
        "eval correct scores for that\n",
        done.negatives_kept);
}

void PrintWeights(const WeightSummary& weight) {
  if (weight.name.empty()) return;
  fmt::print("weight '{}': mean {:.4g}, from {:.4g} to {:.4g}\n", weight.name, weight.mean,
             weight.min, weight.max);
}

// Of training data.
void PrintTrainsUnseen(const ImportSummary& done) {
  constexpr size_t kShown = 3;
  std::map<double, std::vector<std::string>> features;  // by share
  for (const TrainedUnseen& trained : done.trains_unseen)
    features[trained.share].push_back(trained.feature);
  for (auto& [share, names] : features) {
    const size_t more = names.size() - std::min(kShown, names.size());
    names.resize(names.size() - more);
    fmt::print(
        "{:.3g} % of the lookups of {}{} train the row for values that are not here, instead of "
        "their own (--unseen SHARE, or 'unseen' in the schema; 0: none)\n",
        100 * share, fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
  }
}

// For a test set.
void PrintUnseen(const ImportSummary& done, const std::string& vocabulary_from) {
  if (done.unseen.empty()) return;
  fmt::print("values unknown to {}, which read the row for unseen values:\n", vocabulary_from);
  size_t width = 0;
  for (const UnseenLookups& feature : done.unseen) width = std::max(width, feature.feature.size());
  for (const UnseenLookups& feature : done.unseen)
    fmt::print("  {:<{}} {:>6.2f} % of {}\n", feature.feature, width, 100 * feature.share(),
               Counted(feature.lookups, "lookup"));
}

void PrintGrown(const ImportSummary& done, const std::string& vocabulary_from) {
  if (done.grown.empty()) {
    fmt::print("no vocabulary of {} grows: all features are hashed\n", vocabulary_from);
    return;
  }
  fmt::print("new values, which {} lacks:\n", vocabulary_from);
  size_t width = 0;
  for (const GrownVocabulary& feature : done.grown) width = std::max(width, feature.feature.size());
  for (const GrownVocabulary& feature : done.grown)
    fmt::print(
        "  {:<{}} {} new, {} in all; {} of the {} earlier values do not occur in this data\n",
        feature.feature, width, feature.added, feature.values, feature.absent,
        feature.values - feature.added);
}

ImportSummary ImportFiles(const ImportOptions& options) {
  if (options.format != "parquet") return ImportDataset(options);
  const std::unique_ptr<RowSource> source = MakeParquetSource(options);
  // The dataset is that of a CSV file with the same values, but for what it says of its source.
  ImportOptions rows = options;
  rows.format = "csv";
  rows.made_of = options.format;
  return ImportRows(rows, *source);
}

void Import(Flags flags) {
  ImportOptions& options = flags.options;
  if (!flags.dense.empty()) options.log_dense = flags.dense == "log";
  options.skip_bad_rows = flags.on_bad_row == "skip";
  options.stop = StopOnSignals();
  ImportSummary done;
  double seconds = 0;
  {
    DataProgress bar(SystemClock(), "importing");
    options.progress = [&](const ImportProgress& progress) {
      const double fraction = progress.total_raw_bytes == 0
                                  ? -1
                                  : static_cast<double>(progress.raw_bytes) /
                                        static_cast<double>(progress.total_raw_bytes);
      const int64_t rows = progress.rows + progress.test_rows;
      const double rate = static_cast<double>(rows) / std::max(bar.seconds(), 1e-3);
      bar.Update(fraction, fmt::format("{}, {:.0f} rows/s", Counted(rows, "row"), rate));
    };
    done = ImportFiles(options);
    seconds = std::max(bar.seconds(), 1e-3);
  }
  const std::string text = done.text_bytes == 0
                               ? ""
                               : fmt::format(", {:.1f} MB/s of text",
                                             static_cast<double>(done.text_bytes) * 1e-6 / seconds);
  fmt::print("{}: {} in {:.2f} s ({:.0f} rows/s{})\n", options.training_output(),
             Counted(done.rows, "row"), seconds,
             static_cast<double>(done.rows + done.test_rows) / seconds, text);
  PrintLabels(done);
  PrintNegatives(done, options);
  PrintWeights(done.weight);
  PrintTrainsUnseen(done);
  PrintUnseen(done, options.vocabulary_from);
  if (options.grow) PrintGrown(done, options.vocabulary_from);
  for (const ImportSummary& test : done.test) {
    fmt::print("{}/test: {}, held out (--split {})\n", options.output, Counted(test.rows, "row"),
               options.split);
    PrintLabels(test);
    PrintUnseen(test, options.training_output());
  }
  if (options.skip_bad_rows)
    fmt::print("skipped {}{}\n", Counted(done.bad_rows, "bad row"),
               done.skipped_rows.empty() ? ""
                                         : fmt::format(" ({:.3g} % of the rows), listed in {}",
                                                       100 * done.bad_share(), done.skipped_rows));
}

}  // namespace

void AddDataImportVerb(CLI::App& data) {
  CLI::App* verb = data.add_subcommand("import", "Convert text files into a dataset");
  const auto flags = std::make_shared<Flags>();
  ImportOptions& options = flags->options;
  verb->add_option("files", options.inputs,
                   "Text, .gz or .zst, or Parquet, in order; '-' reads standard input")
      ->required()
      ->type_name("FILE");
  verb->add_option("-o,--output", options.output, "Directory to create")
      ->required()
      ->type_name("DIR");
  verb->add_option("--format", options.format,
                   "criteo (TSV, 40 columns), csv or parquet (with --schema)")
      ->check(OneOf({"criteo", "csv", "parquet"}))
      ->capture_default_str();
  verb->add_option("--schema", options.schema,
                   "Schema file for csv and parquet, which describes each column")
      ->type_name("FILE");
  verb->add_option("--vocabulary", options.vocabulary,
                   "hash:N (N ids per feature) or threshold:K (own ids for values seen K times); "
                   "FEATURE=... for one feature; may be repeated [" +
                       std::string(kDefaultVocabulary) + "]")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  verb->add_option("--unseen", options.unseen,
                   fmt::format("Share of lookups that train the row for unseen values (for "
                               "threshold:K); FEATURE=... for one feature; may be repeated [{} "
                               "where fewer lookups read it otherwise]",
                               Vocabulary::kUnseenShare))
      ->allow_extra_args(false)
      ->type_name("SHARE");
  verb->add_option("--keep-negatives", options.keep_negatives,
                   "Keep each row with label 0 with this probability; eval and predict correct "
                   "the scores for it")
      ->check([](const std::string& text) {
        return ParseNumber(text)
                   ? ""
                   : fmt::format("'{}' is not a number: 0.3 keeps 30 % of them", text);
      })
      ->type_name("SHARE");
  verb->add_option("--seed", options.seed,
                   "Selects the lookups of --unseen and the rows of --keep-negatives and --split; "
                   "default: 0");
  verb->add_option("--vocabulary-from", options.vocabulary_from,
                   "Use another dataset's vocabulary and constants of transforms (for a test set, "
                   "which may lack the label)")
      ->type_name("DIR");
  verb->add_flag("--grow", options.grow,
                 "Give the values that --vocabulary-from lacks ids after its own (for a new day's "
                 "training data)");
  verb->add_option("--split", options.split,
                   "Make OUTPUT/train and OUTPUT/test: time:COLUMN@VALUE (rows from VALUE on are "
                   "for the test), random:SHARE, or group:COLUMN@SHARE (all rows of a value on one "
                   "side)")
      ->type_name("SPLIT");
  verb->add_option("--dense", flags->dense,
                   "Transform for format criteo: log (log(max(x, 0) + 1)) or none; missing is 0 "
                   "[log]")
      ->check(OneOf({"log", "none"}));
  verb->add_option("--on-bad-row", flags->on_bad_row,
                   "Stop with an error, or skip bad rows and list them in skipped_rows.csv")
      ->check(OneOf({"error", "skip"}))
      ->capture_default_str();
  verb->add_option("--shard-rows", options.shard_rows, "Rows per shard")
      ->check(AtLeast(1))
      ->capture_default_str();
  verb->footer(
      "Examples:\n"
      "  renzan data import day_0.gz day_1.gz --output data/train --vocabulary hash:100000\n"
      "  renzan data import day_23.gz --output data/test --vocabulary-from data/train\n"
      "  renzan data import day_2.gz --output data/day2 --vocabulary-from data/train --grow\n"
      "  zcat clicks.csv.gz | renzan data import - --format csv --schema schema.yaml \\\n"
      "    --vocabulary threshold:8 --output data/clicks\n"
      "  renzan data import day_*.parquet --format parquet --schema schema.yaml --output "
      "data/days");
  verb->callback([flags] { Import(*flags); });
}

}  // namespace renzan
