#pragma once

// metrics.jsonl: one JSON object per line,
//   {"step": 100, "time": 1790000000.25, "train/loss": 0.4512, "train/auc": 0.7713}
// with the time in seconds since 1970 and null for a value that is not finite. Not thread-safe.

#include <cstdint>
#include <optional>
#include <string>

#include "renzan/observe/append_file.h"
#include "renzan/observe/scalars.h"

namespace renzan {

class MetricsLog {
 public:
  // The first steps for which a resumed run will log training metrics and evaluations.
  struct Next {
    int64_t training = 0, evaluation = 0;
  };

  // Creates `path` or appends to it. Drops lines that will be logged again and an incomplete last
  // line. Throws Error kCantCreate, or kData if the file holds something else.
  explicit MetricsLog(const std::string& path, Next next);

  // Passes the line to the operating system without buffering. Throws Error kIo.
  void Add(const ScalarRecord& record);

 private:
  std::optional<AppendFile> file_;
};

}  // namespace renzan
