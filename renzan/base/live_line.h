#pragma once

// Progress of long-running work: one line that is redrawn on a terminal, or an occasional line when
// output goes to a file. Not thread-safe.

#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace renzan {

class LiveLine {
 public:
  // Seconds between lines of output that goes to a file.
  static constexpr double kPlainInterval = 10;

  // Writes to `fd`, which it does not own; `is_terminal` is the result of isatty. Output that
  // cannot be written is dropped.
  LiveLine(int fd, bool is_terminal);
  // Leaves the line visible and ends it with a newline.
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Shows the result of `painted` (which should fit into `width` columns) on a terminal, that of
  // `printed` elsewhere. Unless `insist`, does nothing if the last update was less than 0.1 s
  // (terminal) or 10 s (elsewhere) ago. `now` is in monotonic seconds.
  void Update(double now, bool insist, const std::function<std::string(int width)>& painted,
              const std::function<std::string()>& printed);

  // Pretends that something was shown at `now`, so that short work prints nothing.
  void Postpone(double now) { shown_at_ = now; }

  // Erases the line, so that a message can be printed in its place.
  void Clear();

 private:
  void Write(std::string_view text);

  int fd_;
  bool is_terminal_;
  bool painted_ = false;
  double shown_at_ = -std::numeric_limits<double>::infinity();
};

// "[====>       ]" with `inside` columns between the brackets; `fraction` is in [0, 1].
std::string BarText(double fraction, int inside);

}  // namespace renzan
