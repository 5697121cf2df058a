#pragma once

// From text files to a dataset, in one pass. Memory does not grow with the input, except by the
// distinct values of threshold vocabularies. The dataset appears whole or not at all.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "renzan/data/input.h"

namespace renzan {

struct ImportProgress {
  int64_t rows = 0;
  int64_t bad_rows = 0;
  uint64_t text_bytes = 0;       // of text read, after decompression
  uint64_t raw_bytes = 0;        // of the files read
  uint64_t total_raw_bytes = 0;  // of the files, 0 if not known
};

struct ImportOptions {
  std::vector<std::string> inputs;  // "-": standard input
  std::string output;
  std::string format = "criteo";  // or "csv"
  std::string schema;             // the schema file of format csv
  bool log_dense = true;          // of format criteo; a csv schema says it for each column
  // "hash:100000" for all features, "C3=threshold:8" for one.
  std::vector<std::string> vocabulary;
  std::string vocabulary_from;  // a dataset whose vocabularies are used as they are
  bool skip_bad_rows = false;
  int64_t shard_rows = 4'000'000;
  // Called every few thousand rows.
  std::function<void(const ImportProgress&)> progress;
  StopFunction stop;
};

inline constexpr char kDefaultVocabulary[] = "hash:100000";

// Throws kData for a bad row (file, line, column, reason) unless they are skipped, kUsage and
// kConfig for options that do not fit, kIo for a full disk.
ImportProgress ImportDataset(const ImportOptions& options);

}  // namespace renzan
