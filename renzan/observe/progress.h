#pragma once

// Training progress for the terminal. Not thread-safe.

#include <cstdint>
#include <limits>
#include <string>

#include "renzan/base/live_line.h"

namespace renzan {

// A NaN is not known yet and not shown.
struct Progress {
  int64_t step = 0, steps = 0;
  double samples_per_second = std::numeric_limits<double>::quiet_NaN();
  std::string output;  // whose loss and AUC are shown, of a model with several; or ""
  // Of the steps up to `measured_at`, since the measurement before.
  double loss = std::numeric_limits<double>::quiet_NaN();
  double auc = std::numeric_limits<double>::quiet_NaN();
  double rmse = std::numeric_limits<double>::quiet_NaN();
  int64_t measured_at = -1;
  double eta_seconds = std::numeric_limits<double>::quiet_NaN();
};

// "step 100/1000 (10%)  loss 0.4512  AUC 0.7801  57.1k samples/s  ETA 3m20s". Without loss and AUC
// unless they were measured at this step: they would look like those of the steps since.
std::string ProgressLine(const Progress& progress);

// " 10% [====>       ] 100/1000  loss 0.4512 ..." in at most `width` columns, with the last loss
// and AUC that were measured.
std::string ProgressBar(const Progress& progress, int width);

// "45s", "3m20s", "1h02m", "2d03h"
std::string SecondsText(double seconds);

class ProgressDisplay {
 public:
  // Arguments of LiveLine.
  ProgressDisplay(int fd, bool is_terminal) : line_(fd, is_terminal), is_terminal_(is_terminal) {}

  // Shows `progress` unless the display was updated very recently; the last step is always shown.
  // Lines in a file without loss and AUC fill only the gaps between those with them, and suppress
  // none. `now` is in monotonic seconds.
  void Update(const Progress& progress, double now);

  // Removes the bar so that a message can be printed.
  void Clear() { line_.Clear(); }

 private:
  LiveLine line_;
  const bool is_terminal_;
  int64_t shown_step_ = -1;
  // When there last were new measurements, and when such a line was last printed.
  double measured_at_ = -std::numeric_limits<double>::infinity();
  double printed_at_ = -std::numeric_limits<double>::infinity();
};

}  // namespace renzan
