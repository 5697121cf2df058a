#include "renzan/data/skipped_rows.h"

#include <fmt/format.h>

namespace renzan {
namespace {

// As RFC 4180 says.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

void SkippedRows::Add(const std::string& file, int64_t line, const std::string& reason) {
  if (!writer_) {
    writer_.emplace(path_);
    writer_->Write("file,line,reason\n");
  }
  writer_->Write(fmt::format("{},{},{}\n", CsvField(file), line, CsvField(reason)));
}

void SkippedRows::Close() {
  if (writer_) writer_->Close();
}

}  // namespace renzan
