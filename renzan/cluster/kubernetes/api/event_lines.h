#pragma once

// Cuts a watch's stream into lines: each is an event. A line comes in any number of pieces, and may
// be as large as an object is.

#include <functional>
#include <string>
#include <string_view>

namespace renzan::cluster::kubernetes {

class EventLines {
 public:
  explicit EventLines(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Calls `take` for every line that `piece` completes, without its end; empty lines are left out.
  // Returns false, and then must not be called again, if a line is too long.
  [[nodiscard]] bool Add(std::string_view piece,
                         const std::function<void(std::string_view line)>& take);

  // Whether the stream is in the middle of a line.
  bool in_line() const { return !begun_.empty(); }

 private:
  const size_t max_bytes_;
  std::string begun_;
};

}  // namespace renzan::cluster::kubernetes
