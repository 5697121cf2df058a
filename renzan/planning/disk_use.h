#pragma once

// How much a run will write to disk, before it begins.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "renzan/config/train_config.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {

// Bytes of a full checkpoint without the headers of its files. A saved model takes as many, without
// what error feedback keeps.
struct DiskUse {
  int64_t dense = 0;  // parameters, optimizer states, and what error feedback keeps
  // Of each of RunSpec::tables: rows and their optimizer states. An estimate if it is saved
  // sparsely, which each of its blocks is or is not.
  std::vector<int64_t> tables;

  int64_t total() const;
};
// `samples`: how many different ones the run trains, which bounds the rows that are saved of a
// table (table_snapshot.h). kAllRows if unknown, without checkpoint.sparse, and for a run that
// starts from another model.
inline constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();
DiskUse DiskUseOf(const RunSpec& spec, int64_t samples = kAllRows);
// `samples` if only the rows of these are saved, else kAllRows.
int64_t SavedSamples(const TrainConfig& config, int64_t samples);

// "a full checkpoint and the model take 12.3 GB each"
std::string Describe(const DiskUse& use);

// About large tables most of whose rows a run over so many different samples cannot touch, though
// they take memory, and what to do; "" if there is none. Not for a run that starts from another
// model, which has trained them. Tables of counted values are left out: they have a row for each
// value that the data had.
std::string UntouchedRowsAdvice(const RunSpec& spec, const DatasetSchema& schema, int64_t samples);

// If `dir`, where `copies` full checkpoints or models have to fit, has too few free bytes; else "".
std::string DiskSpaceAdvice(const DiskUse& use, int copies, const std::string& dir,
                            int64_t free_bytes);

}  // namespace renzan
