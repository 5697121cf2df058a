#pragma once

// How far training is, for people. Not thread-safe.

#include <cstdint>
#include <limits>
#include <string>

#include "renzan/base/live_line.h"

namespace renzan {

// NaN stands for a number that is not known yet; it is left out.
struct Progress {
  int64_t step = 0, steps = 0;
  double samples_per_second = std::numeric_limits<double>::quiet_NaN();
  double loss = std::numeric_limits<double>::quiet_NaN();
  double auc = std::numeric_limits<double>::quiet_NaN();
  double eta_seconds = std::numeric_limits<double>::quiet_NaN();
};

// "step 100/1000 (10%)  loss 0.4512  AUC 0.7801  57.1k samples/s  ETA 3m20s"
std::string ProgressLine(const Progress& progress);

// " 10% [====>       ] 100/1000  loss 0.4512 ..." in at most `width` columns.
std::string ProgressBar(const Progress& progress, int width);

// "45s", "3m20s", "1h02m", "2d03h"
std::string DurationText(double seconds);

class ProgressDisplay {
 public:
  // As a LiveLine's.
  ProgressDisplay(int fd, bool is_terminal) : line_(fd, is_terminal) {}

  // Shows `progress` unless the last time was a moment ago; the last step is always shown. `now` is
  // in monotonic seconds.
  void Update(const Progress& progress, double now);

  // Takes the bar away, so that a message can be printed in its place.
  void Clear() { line_.Clear(); }

 private:
  LiveLine line_;
  int64_t shown_step_ = -1;
};

}  // namespace renzan
