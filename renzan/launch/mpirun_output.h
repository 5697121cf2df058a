#pragma once

// Parses the stderr of `mpirun`: passes on the workers' lines, and extracts from mpirun's notices,
// which are enclosed in rows of dashes, how a worker ended. Not thread-safe.

#include <optional>
#include <string>
#include <string_view>

namespace renzan {

// How the first failing worker ended.
struct MpiWorkerEnd {
  int rank = 0;
  int signal = 0;  // 0 if it ended by itself
  int exit_status = 0;
};

class MpirunOutput {
 public:
  // Takes more output; returns the lines to show, with their line ends.
  std::string Feed(std::string_view text);
  // Returns what is left at the end of the output.
  std::string Finish();

  const std::optional<MpiWorkerEnd>& worker_end() const { return worker_end_; }

 private:
  void TakeLine(std::string line, std::string& shown);
  void TakeNotice(std::string& shown);

  std::string partial_;
  std::string notice_;
  bool in_notice_ = false;
  std::optional<MpiWorkerEnd> worker_end_;
};

}  // namespace renzan
