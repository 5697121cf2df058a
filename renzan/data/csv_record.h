#pragma once

// Splits lines into the fields of CSV records (RFC 4180): fields may be in quotes, a quote inside
// is doubled, and a quoted field may hold delimiters and line breaks. Belongs to one thread.
//
// A quote too many makes a record of the lines that follow it. Where quotes turn out to be wrong,
// only the line on which the record begins is bad; the next record begins on the line after it.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/input.h"

namespace renzan {

class CsvRecordReader {
 public:
  CsvRecordReader(char delimiter, bool quotes, bool trim)
      : delimiter_(delimiter), quotes_(quotes), trim_(trim) {}

  // The next record; false at the end. Fields are valid until the next call. `problem` says what is
  // wrong with its quotes, if anything; `line` is where it begins.
  bool Next(LineReader& lines, int64_t* line, std::string* problem);

  // The record that Next gave last is not one (it has too many fields, say): if it was made of
  // several lines, all but the first will be read again.
  void RejectRecord();

  const std::vector<std::string_view>& fields() const { return fields_; }

 private:
  void SplitPlain(std::string_view line);
  void SplitQuoted(LineReader& lines, std::string* problem);
  bool NextLine(LineReader& lines, std::string_view* text);
  bool AppendLine(LineReader& lines);

  char delimiter_;
  bool quotes_, trim_;
  std::vector<std::string_view> fields_;
  std::string record_;  // a copy, in which doubled quotes are made single
  struct Line {
    int64_t number;
    std::string text;
  };
  std::deque<Line> again_;      // to be read before anything else
  std::vector<Line> appended_;  // the lines of this record but for the first
  Line line_;                   // where the text that NextLine gave lies, if it was read again
  int64_t line_number_ = 0;     // of the line that NextLine gave last
  size_t appended_bytes_ = 0;
  struct Range {
    size_t begin, end;
    bool quoted;
  };
  std::vector<Range> ranges_;
};

}  // namespace renzan
