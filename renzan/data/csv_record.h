#pragma once

// Splits lines into the fields of CSV records (RFC 4180): fields may be in quotes, a quote inside
// is doubled, and a quoted field may hold delimiters and line breaks. Belongs to one thread.

#include <cstdint>
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

  const std::vector<std::string_view>& fields() const { return fields_; }

 private:
  void SplitPlain(std::string_view line);
  void SplitQuoted(LineReader& lines, std::string* problem);
  bool AppendLine(LineReader& lines);

  char delimiter_;
  bool quotes_, trim_;
  std::vector<std::string_view> fields_;
  std::string record_;  // a copy, in which doubled quotes are made single
  struct Range {
    size_t begin, end;
    bool quoted;
  };
  std::vector<Range> ranges_;
};

}  // namespace renzan
