#include "renzan/data/text/csv_record.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// The limit for the lines after a record's first. After an unclosed quote this much is read twice.
constexpr size_t kMaxAppendedBytes = 1 << 20;

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

bool CsvRecordReader::Next(LineReader& lines, int64_t* line, std::string* problem) {
  appended_.clear();
  appended_bytes_ = 0;
  if (!NextLine(lines, &text_)) return false;
  *line = line_number_;
  problem->clear();
  fields_.clear();
  if (!quotes_ || text_.find('"') == std::string_view::npos) {
    SplitPlain(text_);
  } else {
    record_.assign(text_);
    SplitQuoted(lines, *line, problem);
  }
  quotes_are_right_ = problem->empty();
  return true;
}

void CsvRecordReader::RejectRecord(LineReader& lines, const std::function<bool()>& is_row) {
  if (appended_.empty()) return;
  if (!quotes_are_right_ || HoldsRow(lines, is_row))
    ReadAgain();
  else
    appended_.clear();
}

void CsvRecordReader::ReadAgain() {
  again_.insert(again_.begin(), std::make_move_iterator(appended_.begin()),
                std::make_move_iterator(appended_.end()));
  appended_.clear();
}

// Reads the lines after the record's first on their own, and leaves the reader as it was, but for
// fields().
bool CsvRecordReader::HoldsRow(LineReader& lines, const std::function<bool()>& is_row) {
  const std::vector<Line> appended = std::exchange(appended_, {});
  const int64_t line_number = line_number_;
  std::deque<Line> later(appended.begin(), appended.end());
  again_.swap(later);
  only_again_ = true;
  std::string problem;
  int64_t line = 0;
  bool found = false;
  while (!found && Next(lines, &line, &problem)) {
    found = problem.empty() && is_row();
    ReadAgain();
  }
  only_again_ = false;
  again_.swap(later);
  appended_ = appended;
  line_number_ = line_number;
  return found;
}

bool CsvRecordReader::MayReadOn(LineReader& lines) const {
  return !again_.empty() || (!only_again_ && lines.MoreInFile());
}

bool CsvRecordReader::NextLine(LineReader& lines, std::string_view* text) {
  if (again_.empty()) {
    if (only_again_ || !lines.Next(text)) return false;
    line_number_ = lines.line_number();
    return true;
  }
  line_ = std::move(again_.front());
  again_.pop_front();
  line_number_ = line_.number;
  *text = line_.text;
  return true;
}

void CsvRecordReader::SplitPlain(std::string_view line) {
  for (;;) {
    const size_t end = line.find(delimiter_);
    const std::string_view field = line.substr(0, end);
    fields_.push_back(trim_ ? TrimBlanks(field) : field);
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + delimiter_.size());
  }
}

// Appends the next line of the same file to the record. Lines waiting in again_ are from that file.
bool CsvRecordReader::AppendLine(LineReader& lines) {
  std::string_view text;
  text_ = {};  // reading may move it
  if (appended_bytes_ > kMaxAppendedBytes || !MayReadOn(lines) || !NextLine(lines, &text))
    return false;
  appended_.push_back({line_number_, std::string(text)});
  appended_bytes_ += text.size() + 1;
  record_ += '\n';
  record_ += text;
  return true;
}

bool CsvRecordReader::DelimiterIsAt(size_t at) const {
  return record_.compare(at, delimiter_.size(), delimiter_) == 0;
}

// Whether trimming drops this byte. A blank that is the delimiter ends a field instead.
bool CsvRecordReader::IsBlankAt(size_t at) const {
  return trim_ && at < record_.size() && IsBlank(record_[at]) && !DelimiterIsAt(at);
}

void CsvRecordReader::SplitQuoted(LineReader& lines, int64_t first_line, std::string* problem) {
  ranges_.clear();
  size_t at = 0;
  for (;;) {
    size_t open = at;
    while (IsBlankAt(open)) ++open;
    if (open == record_.size() || record_[open] != '"') {
      const size_t end = std::min(record_.find(delimiter_, at), record_.size());
      ranges_.push_back({at, end, false});
      at = end;
    } else {
      size_t read = open + 1, write = read;
      const size_t lines_before = appended_.size();
      // Where the quote opens, for messages, which name the first line anyway.
      const auto place = [&] {
        return lines_before == 0 ? fmt::format("field {}", ranges_.size() + 1)
                                 : fmt::format("field {} in line {}", ranges_.size() + 1,
                                               first_line + static_cast<int64_t>(lines_before));
      };
      for (;; ++read) {
        if (read == record_.size() && !AppendLine(lines)) {
          *problem = fmt::format(
              "the quote that opens {} is never closed{}", place(),
              appended_bytes_ > kMaxAppendedBytes ? " within 1 MiB of lines after it" : "");
          return;
        }
        if (record_[read] == '"') {
          if (read + 1 == record_.size() || record_[read + 1] != '"') break;
          ++read;  // two quotes stand for one
        }
        record_[write++] = record_[read];
      }
      at = read + 1;
      while (IsBlankAt(at)) ++at;
      if (at < record_.size() && !DelimiterIsAt(at)) {
        const size_t lines_more = appended_.size();
        *problem = lines_more == lines_before
                       ? fmt::format("text follows the closing quote of {}", place())
                       : fmt::format("text follows the quote in line {} that closes {}",
                                     first_line + static_cast<int64_t>(lines_more), place());
        return;
      }
      ranges_.push_back({open + 1, write, true});
    }
    if (at == record_.size()) break;
    at += delimiter_.size();
  }
  for (const Range& range : ranges_) {
    const std::string_view field =
        std::string_view(record_).substr(range.begin, range.end - range.begin);
    fields_.push_back(trim_ && !range.quoted ? TrimBlanks(field) : field);
  }
}

}  // namespace renzan
