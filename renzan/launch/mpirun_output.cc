#include "renzan/launch/mpirun_output.h"

#include <regex>
#include <utility>

namespace renzan {
namespace {

bool IsRow(const std::string& line) {
  return line.size() > 40 && line.find_first_not_of('-') == line.size() - 1 && line.back() == '\n';
}

}  // namespace

std::string MpirunOutput::Feed(std::string_view text) {
  std::string shown;
  partial_ += text;
  size_t begin = 0;
  for (size_t end; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1)
    TakeLine(partial_.substr(begin, end + 1 - begin), shown);
  partial_.erase(0, begin);
  return shown;
}

std::string MpirunOutput::Finish() {
  std::string shown = std::exchange(notice_, "");
  shown += std::exchange(partial_, "");
  in_notice_ = false;
  return shown;
}

void MpirunOutput::TakeLine(std::string line, std::string& shown) {
  const bool row = IsRow(line);
  if (!in_notice_ && !row) {
    shown += line;
    return;
  }
  notice_ += line;
  if (row && in_notice_) TakeNotice(shown);
  if (row) in_notice_ = !in_notice_;
}

void MpirunOutput::TakeNotice(std::string& shown) {
  static const std::regex killed(R"(process rank (\d+) [^]*exited on\s+signal (\d+))");
  // Open MPI 4 writes [[65153,1],2], Open MPI 5 [prterun-host-985@1,2].
  static const std::regex ended(R"(Process name: \[[^\n]*,(\d+)\]\s+Exit code:\s+(\d+))");
  const std::string notice = std::exchange(notice_, "");
  std::smatch match;
  if (std::regex_search(notice, match, killed)) {
    worker_end_ = {std::stoi(match[1]), std::stoi(match[2]), 0};
  } else if (std::regex_search(notice, match, ended)) {
    worker_end_ = {std::stoi(match[1]), 0, std::stoi(match[2])};
  } else if (notice.find("the job has been aborted") == std::string::npos) {
    shown += notice;
  }
}

}  // namespace renzan
