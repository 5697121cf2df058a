#pragma once

// Imports text files, or rows from elsewhere, into a dataset in one pass. Memory grows only with
// the distinct values of threshold vocabularies. The dataset appears atomically.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/label_summary.h"
#include "renzan/data/text/input.h"

namespace renzan {

struct ImportProgress {
  int64_t rows = 0;
  int64_t bad_rows = 0;
  int64_t multi_line_rows = 0;   // of `rows`: those with quoted line breaks
  int64_t test_rows = 0;         // held out by ImportOptions::split; `rows` are the others
  int64_t dropped_rows = 0;      // negatives that ImportOptions::keep_negatives left out
  uint64_t text_bytes = 0;       // of text read, after decompression
  uint64_t raw_bytes = 0;        // of the files read
  uint64_t total_raw_bytes = 0;  // of the files, 0 if not known

  // Of all rows read.
  double bad_share() const {
    const int64_t all = rows + test_rows + dropped_rows + bad_rows;
    return all == 0 ? 0 : static_cast<double>(bad_rows) / static_cast<double>(all);
  }
};

// How many lookups of a feature read the row for unseen values.
struct UnseenLookups {
  std::string feature;
  int64_t lookups = 0, unseen = 0;  // without missing values

  double share() const {
    return lookups == 0 ? 0 : static_cast<double>(unseen) / static_cast<double>(lookups);
  }
};

// The share of a feature's lookups that train the row for unseen values instead of their own.
struct TrainedUnseen {
  std::string feature;
  double share = 0;
};

// How the vocabulary of a feature has grown.
struct GrownVocabulary {
  std::string feature;
  int64_t values = 0;  // all of them
  int64_t added = 0;   // of these, those that are new
  int64_t absent = 0;  // of the others, those that do not occur in this data
};

struct ImportSummary : ImportProgress {
  std::string label_name;  // empty: the data has no labels
  LabelSummary label;
  WeightSummary weight;
  double negatives_kept = 1;  // DatasetSchema::negatives_kept
  // If the vocabularies are another dataset's, one entry for each feature with a row for unseen
  // values: in `unseen` if they are used unchanged, in `grown` if they grow.
  std::vector<UnseenLookups> unseen;
  std::vector<GrownVocabulary> grown;
  // Of training data: the features some of whose lookups were redirected (Vocabulary::TrainUnseen).
  std::vector<TrainedUnseen> trains_unseen = {};
  // The file that lists the bad rows (SkippedRows); empty if there are none.
  std::string skipped_rows;
  std::vector<FurtherLabelSummary> further_labels = {};
  // With ImportOptions::split: that of the test set, which has no progress but its rows.
  std::vector<ImportSummary> test = {};
};

struct ImportOptions {
  std::vector<std::string> inputs;  // "-": standard input
  std::string output;
  std::string format = "criteo";  // or "csv", also of tables
  std::string made_of;            // what dataset.yaml says instead of `format`, unless empty
  std::string schema;             // the schema file of format csv
  std::optional<bool> log_dense;  // of format criteo (true); a CSV schema has it per column
  // "hash:100000" for all features, "C3=threshold:8" for one.
  std::vector<std::string> vocabulary;
  // Shares of lookups that train the row for unseen values (Vocabulary::TrainUnseen): "0.01" for
  // all features with a threshold vocabulary, "C3=0.05" for one.
  std::vector<std::string> unseen;
  // Each row with label 0 is kept with this probability, in (0, 1].
  std::optional<double> keep_negatives;
  std::optional<uint64_t> seed;  // which lookups and rows these are; 0 if not given
  // A dataset whose vocabularies are reused. Unless they grow, the input may lack the label.
  std::string vocabulary_from;
  bool grow = false;  // add the values that they lack: this is training data, too
  // A RowSplit's text: `output` then gets the datasets train and test, the second as an import of
  // its rows with the vocabularies of the first. keep_negatives concerns training rows only.
  std::string split;
  bool skip_bad_rows = false;  // and list them in a file beside dataset.yaml
  int64_t shard_rows = 4'000'000;
  // Called every few thousand rows.
  std::function<void(const ImportProgress&)> progress;
  StopFunction stop;

  // Where the rows go that are not held out.
  std::string training_output() const { return split.empty() ? output : output + "/train"; }
  bool is_training_data() const { return vocabulary_from.empty() || grow; }
};

inline constexpr char kDefaultVocabulary[] = "hash:100000";

// Throws kData for a bad row (file, line, column, reason) unless bad rows are skipped, kUsage or
// kConfig for inconsistent options, kIo for a full disk. Warns if all labels are the same, if many
// rows are bad, of weights that act as another learning rate, and of features whose values are
// nearly all rare.
ImportSummary ImportDataset(const ImportOptions& options);

class RowSource;
// The same for rows from elsewhere: `inputs`, `schema` and `log_dense` mean nothing.
ImportSummary ImportRows(const ImportOptions& options, RowSource& source);

}  // namespace renzan
