#pragma once

// How far long work is, for people: one line that is painted over on a terminal, and a line now and
// then where output goes to a file. Not thread-safe.

#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace renzan {

class LiveLine {
 public:
  // Writes to `fd`; `is_terminal` is isatty's answer. Neither owns nor checks it: output that
  // cannot be written is lost, and the work goes on.
  LiveLine(int fd, bool is_terminal);
  // Leaves what it painted, and ends its line.
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Shows what `painted` says, which should fit into `width` columns, on a terminal, and what
  // `printed` says elsewhere. Does nothing, unless `insist`, if the last time was a moment ago
  // (0.1 s on a terminal, 10 s elsewhere). `now` is in monotonic seconds.
  void Update(double now, bool insist, const std::function<std::string(int width)>& painted,
              const std::function<std::string()>& printed);

  // As if something had been shown at `now`: work that is over in a moment says nothing.
  void Postpone(double now) { shown_at_ = now; }

  // Takes the painted line away, so that a message can be printed in its place.
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
