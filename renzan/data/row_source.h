#pragma once

// Where the rows of an import come from. Not thread-safe.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/text/row_parser.h"

namespace renzan {

struct ImportOptions;
struct ImportProgress;

class RowSource {
 public:
  virtual ~RowSource() = default;
  // Finds the columns. Must be called first, and once.
  virtual void Begin() = 0;
  // As those of RowParser.
  virtual const DatasetSchema& schema() const = 0;
  virtual std::vector<double> unseen_shares() const = 0;
  virtual std::vector<std::string> keys() const = 0;
  virtual std::string SplitBy(const std::string& column) = 0;
  // Gives the next rows, of which there is at least one, or a bad row. They are valid until the
  // next call, and the caller may change them.
  virtual RowParser::Result Next(std::span<TextRow>* rows, BadRow* bad) = 0;

  // All inputs, and the one that the last row came from, for people.
  virtual std::string names() const = 0;
  virtual std::string name() const = 0;
  // Where the row of the last input is that has this number: "clicks.csv:7".
  virtual std::string PlaceOf(int64_t line) const = 0;
  // How bad rows are skipped: "skip bad rows with --on-bad-row skip".
  virtual std::string HowToSkip() const = 0;
  // Sets how much has been read.
  virtual void Report(ImportProgress* progress) const = 0;
};

// The text files of an import.
std::unique_ptr<RowSource> MakeTextSource(const ImportOptions& options);

}  // namespace renzan
