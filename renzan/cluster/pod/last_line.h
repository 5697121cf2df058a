#pragma once

// The last line of a text that arrives in pieces. Not thread-safe.

#include <string>
#include <string_view>

namespace renzan::cluster::pod {

class LastLine {
 public:
  void Add(std::string_view piece);

  // Without its line end; blank lines do not count. A carriage return also begins a line, because
  // progress bars overwrite each other. Of a long line, its first 4096 bytes.
  const std::string& text() const;

 private:
  static bool IsBlank(const std::string& line);

  std::string current_, last_;
};

}  // namespace renzan::cluster::pod
