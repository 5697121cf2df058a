#pragma once

// FILE.synth.json: a generator's report about the text file it wrote.

#include <cstdint>
#include <optional>
#include <string>

#include "renzan/data/dataset/dataset.h"

namespace renzan {

// "clicks.tsv.gz.synth.json"
std::string TeacherReportPath(const std::string& file);

void WriteTeacherReport(const std::string& file, int64_t rows, uint64_t seed, int64_t first_row,
                        const BayesOptimal& bayes_optimal);

// Nothing if `file` has no report. Throws kData if the report is invalid or is for a different
// number of rows.
std::optional<BayesOptimal> ReadTeacherReport(const std::string& file, int64_t rows);

}  // namespace renzan
