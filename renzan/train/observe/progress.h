#pragma once

// How far training is, for people: a bar that is painted over on a terminal, a line now and then
// where output goes to a file. Not thread-safe.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

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
  // Writes to `fd`; `is_terminal` is isatty's answer. Neither owns nor checks it: output that
  // cannot be written is lost, and training goes on.
  ProgressDisplay(int fd, bool is_terminal);
  // Ends a bar's line.
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  // Shows `progress` unless the last time was a moment ago (0.1 s on a terminal, 10 s elsewhere);
  // the last step is always shown. `now` is in monotonic seconds.
  void Update(const Progress& progress, double now);

  // Takes the bar away, so that a message can be printed in its place.
  void Clear();

 private:
  void Write(std::string_view text);

  int fd_;
  bool is_terminal_;
  bool painted_ = false;
  int64_t shown_step_ = -1;
  double shown_at_ = -std::numeric_limits<double>::infinity();
};

}  // namespace renzan
