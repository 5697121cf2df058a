#pragma once

// How a CSV or TSV file is written, and what its columns hold.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/data/text/column_statistics.h"
#include "renzan/data/text/propose_schema.h"

namespace renzan {

struct Dialect {
  std::string delimiter = ",";
  bool quotes = true;
  bool trim = false;
  size_t num_fields = 1;
  double share = 0;  // of records with that many
  bool header = false;
  std::string unlike_header = "";  // what in the first record is no name, or ""
  std::vector<std::string> names = {};
};

struct Column {
  std::string name;
  ColumnStatistics values = {};
};

struct Table {
  Dialect dialect;
  std::vector<Column> columns = {};
  int64_t rows = 0, bad_rows = 0;
  bool complete = true;
};

// Finds the delimiter, the quotes and whether there is a header from the first records, then reads
// the rows. Throws kData for a file that is empty or not a table.
Table ReadTable(const ProposalOptions& options);

}  // namespace renzan
