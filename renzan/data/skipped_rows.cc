#include "renzan/data/skipped_rows.h"

#include <fmt/format.h>

#include "renzan/data/text/csv_field.h"

namespace renzan {
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
