#include "renzan/data/csv_record.h"

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan {
namespace {

constexpr size_t kMaxRecordBytes = 16 << 20;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool CsvRecordReader::Next(LineReader& lines, int64_t* line, std::string* problem) {
  std::string_view text;
  if (!lines.Next(&text)) return false;
  *line = lines.line_number();
  problem->clear();
  fields_.clear();
  if (!quotes_ || text.find('"') == std::string_view::npos) {
    SplitPlain(text);
  } else {
    record_.assign(text);
    SplitQuoted(lines, problem);
  }
  return true;
}

void CsvRecordReader::SplitPlain(std::string_view line) {
  for (;;) {
    const size_t end = line.find(delimiter_);
    const std::string_view field = line.substr(0, end);
    fields_.push_back(trim_ ? Trim(field) : field);
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

// Adds the next line of the same file to the record.
bool CsvRecordReader::AppendLine(LineReader& lines) {
  std::string_view text;
  if (record_.size() > kMaxRecordBytes || !lines.MoreInFile() || !lines.Next(&text)) return false;
  record_ += '\n';
  record_ += text;
  return true;
}

void CsvRecordReader::SplitQuoted(LineReader& lines, std::string* problem) {
  ranges_.clear();
  size_t at = 0;
  for (;;) {
    size_t open = at;
    while (trim_ && open < record_.size() && record_[open] == ' ') ++open;
    if (open == record_.size() || record_[open] != '"') {
      const size_t end = std::min(record_.find(delimiter_, at), record_.size());
      ranges_.push_back({at, end, false});
      at = end;
    } else {
      size_t read = open + 1, write = read;
      for (;; ++read) {
        if (read == record_.size() && !AppendLine(lines)) {
          *problem =
              fmt::format("the quote that opens field {} is never closed", ranges_.size() + 1);
          return;
        }
        if (record_[read] == '"') {
          if (read + 1 == record_.size() || record_[read + 1] != '"') break;
          ++read;  // two quotes stand for one
        }
        record_[write++] = record_[read];
      }
      ranges_.push_back({open + 1, write, true});
      at = read + 1;
      while (trim_ && at < record_.size() && record_[at] == ' ') ++at;
      if (at < record_.size() && record_[at] != delimiter_) {
        *problem = fmt::format("text follows the closing quote of field {}", ranges_.size());
        return;
      }
    }
    if (at == record_.size()) break;
    ++at;
  }
  for (const Range& range : ranges_) {
    const std::string_view field =
        std::string_view(record_).substr(range.begin, range.end - range.begin);
    fields_.push_back(trim_ && !range.quoted ? Trim(field) : field);
  }
}

}  // namespace renzan
