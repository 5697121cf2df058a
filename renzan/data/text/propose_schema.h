#pragma once

// Proposes the schema file of a CSV or TSV file from its content, for a person to edit.

#include <cstdint>
#include <string>

#include "renzan/data/text/input.h"

namespace renzan {

struct ProposalOptions {
  std::string input;  // plain, .gz or .zst; not standard input, which is read twice
  int64_t max_rows = 1'000'000;
  StopFunction stop = nullptr;
};

// A schema file that `renzan data import --schema` accepts, with comments on what was seen in each
// column. Throws kData for a file that is empty or not a table.
std::string ProposeSchema(const ProposalOptions& options);

}  // namespace renzan
