#pragma once

// Splits lines into the fields of CSV records (RFC 4180): fields may be quoted, quotes inside are
// doubled, and quoted fields may contain delimiters and line breaks. Not thread-safe.
//
// A stray quote pulls the following lines into the record. So if a record turns out to be bad, but
// another one begins on a later line of it, only its first line is bad, and the next record begins
// on the line after it. A record without such a line is bad as a whole.

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "renzan/data/text/input.h"

namespace renzan {

// Without the spaces and tabs at its ends.
std::string_view TrimBlanks(std::string_view text);

class CsvRecordReader {
 public:
  CsvRecordReader(std::string delimiter, bool quotes, bool trim)
      : delimiter_(std::move(delimiter)), quotes_(quotes), trim_(trim) {}

  // Reads the next record; false at the end. Fields are valid until the next call. `problem` is
  // what is wrong with its quotes, and where, or empty; `line` is where it begins.
  bool Next(LineReader& lines, int64_t* line, std::string* problem);

  // Rejects the last record, for example for wrong quotes, too many fields or an invalid value. If
  // it has several lines, all but the first are read again, unless its quotes are right and no line
  // after the first begins a record that `is_row` accepts. `is_row` is called for such records,
  // which fields() then has. Afterwards fields() are no longer valid.
  void RejectRecord(LineReader& lines, const std::function<bool()>& is_row);

  const std::vector<std::string_view>& fields() const { return fields_; }
  // The last record's line as it is in the file; "" if more lines were read for it.
  std::string_view line() const { return text_; }
  // How many lines the last record has.
  int64_t num_lines() const { return 1 + static_cast<int64_t>(appended_.size()); }

 private:
  void SplitPlain(std::string_view line);
  void SplitQuoted(LineReader& lines, int64_t first_line, std::string* problem);
  bool DelimiterIsAt(size_t at) const;
  bool IsBlankAt(size_t at) const;
  bool NextLine(LineReader& lines, std::string_view* text);
  bool AppendLine(LineReader& lines);
  bool MayReadOn(LineReader& lines) const;
  bool HoldsRow(LineReader& lines, const std::function<bool()>& is_row);
  void ReadAgain();

  std::string delimiter_;  // one character or more
  bool quotes_, trim_;
  std::vector<std::string_view> fields_;
  std::string_view text_;  // line()
  std::string record_;     // a copy with doubled quotes made single
  struct Line {
    int64_t number;
    std::string text;
  };
  std::deque<Line> again_;      // lines to be read again first
  bool only_again_ = false;     // the input ends with them
  std::vector<Line> appended_;  // the lines of this record except the first
  Line line_;                   // backs the text of NextLine if it came from again_
  int64_t line_number_ = 0;     // of the last line of NextLine
  size_t appended_bytes_ = 0;
  bool quotes_are_right_ = true;  // of the last record
  struct Range {
    size_t begin, end;
    bool quoted;
  };
  std::vector<Range> ranges_;
};

}  // namespace renzan
