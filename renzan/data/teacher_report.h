#pragma once

// FILE.synth.json: what a generator of text says about the file it wrote.

#include <cstdint>
#include <optional>
#include <string>

#include "renzan/data/dataset.h"

namespace renzan {

// "clicks.tsv.gz.synth.json"
std::string TeacherReportPath(const std::string& file);

void WriteTeacherReport(const std::string& file, int64_t rows, uint64_t seed, int64_t first_row,
                        const BayesOptimal& bayes_optimal);

// Nothing if there is no report beside `file`. Throws kData for one that cannot be read or is about
// another number of rows.
std::optional<BayesOptimal> ReadTeacherReport(const std::string& file, int64_t rows);

}  // namespace renzan
