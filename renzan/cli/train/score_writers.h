#pragma once

// The formats of files of scores.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/cli/train/score_columns.h"

namespace renzan {

// Not thread-safe. Without Close() the file is removed.
class ScoreWriter {
 public:
  virtual ~ScoreWriter() = default;
  // Of the next rows, `rows`; by output of the model.
  virtual void Append(std::span<const std::vector<float>> scores, const ScoredRows& rows) = 0;
  virtual void Close() = 0;
};

struct ScoreFormat {
  const char* extension;  // ".csv"
  // Of these rows of the dataset, with columns before the scores, which have these `names`.
  std::unique_ptr<ScoreWriter> (*make)(const std::string& path, const Dataset& dataset,
                                       RowRange rows, std::vector<ScoreColumn> columns,
                                       const std::vector<std::string>& names);
};

// The format of a file with this name. Throws kUsage, with all of them, if its ending is another
// one.
const ScoreFormat& ScoreFormatOf(const std::string& path);

}  // namespace renzan
