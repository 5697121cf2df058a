#pragma once

// Reads what an `mpirun` writes on stderr: the workers' lines, which are passed on, and mpirun's
// own notices between rows of dashes, of which those about a worker's end become one fact. Not
// thread-safe.

#include <optional>
#include <string>
#include <string_view>

namespace renzan {

// How the worker that failed first ended.
struct MpiWorkerEnd {
  int rank = 0;
  int signal = 0;  // 0 if it ended by itself
  int exit_status = 0;
};

class MpirunOutput {
 public:
  // Takes in more output; returns the lines to show, each with its end.
  std::string Feed(std::string_view text);
  // The same for what is left when the output has ended.
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
