#pragma once

// How much a run will write to disk, before it begins.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/run_spec/run_spec.h"

namespace renzan {

// Bytes of a full checkpoint without the headers of its files. A saved model takes as many.
struct DiskUse {
  int64_t dense = 0;            // parameters, optimizer states, and what error feedback keeps
  std::vector<int64_t> tables;  // of each of RunSpec::tables: rows and their optimizer states

  int64_t total() const;
};
DiskUse DiskUseOf(const RunSpec& spec);

// "a full checkpoint takes 12.3 GB, and so does the model"
std::string Describe(const DiskUse& use);

// About large tables most of whose rows a run over so many different samples cannot touch, and what
// to do; "" if there is none.
std::string UntouchedRowsAdvice(const RunSpec& spec, const DiskUse& use, int64_t samples);

// If `dir`, where `copies` full checkpoints or models have to fit, has too few free bytes; else "".
std::string DiskSpaceAdvice(const DiskUse& use, int copies, const std::string& dir,
                            int64_t free_bytes);

}  // namespace renzan
