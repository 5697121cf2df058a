#include "renzan/launch/mpirun_output.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace renzan {
namespace {

bool IsRow(const std::string& line) {
  return line.size() > 40 && line.find_first_not_of('-') == line.size() - 1 && line.back() == '\n';
}

// Moves `text` behind `words` and the blanks after them. False if they are not there.
bool SkipTo(std::string_view words, std::string_view* text) {
  const size_t begin = text->find(words);
  if (begin == text->npos) return false;
  text->remove_prefix(begin + words.size());
  text->remove_prefix(std::min(text->find_first_not_of(" \t\n"), text->size()));
  return true;
}

bool ReadNumber(std::string_view text, int* number) {
  return std::from_chars(text.data(), text.data() + text.size(), *number).ec == std::errc();
}

// "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed)."
bool ReadKilled(std::string_view notice, int* rank, int* signal) {
  return SkipTo("process rank", &notice) && ReadNumber(notice, rank) &&
         SkipTo("exited on", &notice) && SkipTo("signal", &notice) && ReadNumber(notice, signal);
}

// "Process name: [[65153,1],2]" of Open MPI 4 or "Process name: [prterun-host-985@1,2]" of Open MPI
// 5, and below it "Exit code:    69".
bool ReadEnded(std::string_view notice, int* rank, int* exit_status) {
  if (!SkipTo("Process name: [", &notice)) return false;
  const std::string_view name = notice.substr(0, notice.find('\n'));
  return ReadNumber(name.substr(name.rfind(',') + 1), rank) && SkipTo("Exit code:", &notice) &&
         ReadNumber(notice, exit_status);
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
  const std::string notice = std::exchange(notice_, "");
  int rank = 0, number = 0;
  if (ReadKilled(notice, &rank, &number)) {
    worker_end_ = {rank, number, 0};
  } else if (ReadEnded(notice, &rank, &number)) {
    worker_end_ = {rank, 0, number};
  } else if (notice.find("the job has been aborted") == std::string::npos) {
    shown += notice;
  }
}

}  // namespace renzan
