#pragma once

// The list of an input's rows that an import has skipped: a CSV file with a header (file, line,
// reason), which exists if there are any. Not thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "renzan/base/file/file.h"

namespace renzan {

inline constexpr char kSkippedRowsName[] = "skipped_rows.csv";

class SkippedRows {
 public:
  explicit SkippedRows(std::string path) : path_(std::move(path)) {}

  // Throws what FileWriter throws.
  void Add(const std::string& file, int64_t line, const std::string& reason);
  void Close();

 private:
  const std::string path_;
  std::optional<FileWriter> writer_;
};

}  // namespace renzan
