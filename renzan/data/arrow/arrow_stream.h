#pragma once

// One stream of record batches, whose errors say what it reads. Not thread-safe.

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/data/arrow/arrow_abi.h"

namespace renzan {

class ArrowStream {
 public:
  // `name`: of the file that it reads, or "" for a table in memory. The caller releases `stream`
  // after this object.
  ArrowStream(ArrowArrayStream* stream, std::string name)
      : stream_(stream), name_(std::move(name)) {}

  // Reads the columns' names and types. Throws kUsage if they are none of a table, else as Next().
  void Open();
  const std::vector<std::string>& names() const { return names_; }
  // The first column of this name, which must be one.
  const ArrowSchema& FieldOf(const std::string& name) const;
  const ArrowSchema& field(size_t column) const { return *schema_->children[column]; }

  // Reads the next batch; false at the end. Throws kData for a batch that is malformed, or if what
  // is behind the stream cannot be read as data; kIo if the system could not read it, kOsError if
  // memory is short.
  bool Next();
  // Its rows are [offset, offset + length) of each column. None of them is null as a whole after
  // CheckRows().
  const ArrowArray& batch() const { return *batch_; }
  // To be called after the columns are bound, whose malformed arrays say more.
  void CheckRows() const;

  // What messages call it: the file, or "the table".
  std::string name() const { return name_.empty() ? "the table" : name_; }
  bool is_file() const { return !name_.empty(); }
  // To begin a message with: "a.parquet: ", or "".
  std::string prefix() const { return name_.empty() ? "" : name_ + ": "; }

 private:
  [[noreturn]] void FailToRead(int error) const;

  ArrowArrayStream* stream_;
  std::string name_;
  ArrowOwned<ArrowSchema> schema_;
  ArrowOwned<ArrowArray> batch_;
  std::vector<std::string> names_;
  bool is_open_ = false;
  int64_t rows_ = 0;  // before the batch
};

}  // namespace renzan
