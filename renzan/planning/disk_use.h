#pragma once

// How much a run will write to disk, before it begins.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "renzan/config/train_config.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {

// Bytes of a full checkpoint and of a saved model, without the headers of their files.
struct DiskUse {
  int64_t dense = 0;  // parameters and optimizer states
  // Of each of RunSpec::tables: rows and their optimizer states. An estimate if it is saved
  // sparsely, which each of its blocks is or is not.
  std::vector<int64_t> tables;
  // Of a checkpoint only: what error feedback keeps, and what was counted since the last report.
  int64_t feedback = 0, progress = 0;

  int64_t model() const;
  int64_t checkpoint() const { return model() + feedback + progress; }
};
// `samples`: how many different ones the run trains, which bounds the rows that are saved of a
// table (table_snapshot.h). kAllRows if unknown, without checkpoint.sparse, and for a run that
// starts from another model.
inline constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();
DiskUse DiskUseOf(const RunSpec& spec, int64_t samples = kAllRows);
// `samples` if only the rows of these are saved, else kAllRows.
int64_t SavedSamples(const TrainConfig& config, int64_t samples);

// "a full checkpoint takes 12.4 GB, the model 12.3 GB"
std::string Describe(const DiskUse& use);

// About large tables most of whose rows a run over so many different samples cannot touch, though
// they take memory, and what to do; "" if there is none. Not for a run that starts from another
// model, which has trained them. Tables of counted values are left out: they have a row for each
// value that the data had.
std::string UntouchedRowsAdvice(const RunSpec& spec, const DatasetSchema& schema, int64_t samples);

// If `dir`, where `bytes` of `use` have to fit, has fewer free bytes; else "".
std::string DiskSpaceAdvice(const DiskUse& use, int64_t bytes, const std::string& dir,
                            int64_t free_bytes);

}  // namespace renzan
