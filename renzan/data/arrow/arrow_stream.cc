#include "renzan/data/arrow/arrow_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/data/arrow/arrow_values.h"

namespace renzan {
namespace {

// Whose columns' values are then hidden. A producer may leave counting to us.
int64_t NullRows(const ArrowArray& batch) {
  if (batch.null_count >= 0) return batch.null_count;
  if (batch.n_buffers < 1 || batch.buffers == nullptr || batch.buffers[0] == nullptr) return 0;
  int64_t nulls = 0;
  for (int64_t row = batch.offset; row < batch.offset + batch.length; ++row)
    nulls += !ArrowValues::Bit(batch.buffers[0], row);
  return nulls;
}

}  // namespace

void ArrowStream::Open() {
  if (stream_->get_schema == nullptr || stream_->get_next == nullptr)
    Fail(ErrorCode::kUsage, "{}the stream is malformed: get_schema or get_next is NULL", prefix());
  if (const int error = stream_->get_schema(stream_, schema_.Out()); error != 0) FailToRead(error);
  if (!schema_.holds() || schema_->format == nullptr || std::strcmp(schema_->format, "+s") != 0)
    Fail(ErrorCode::kUsage,
         "{}the stream has no columns: give a table, a data frame or a stream of record batches",
         prefix());
  for (int64_t i = 0; i < schema_->n_children; ++i) {
    if (schema_->children == nullptr || schema_->children[i] == nullptr)
      Fail(ErrorCode::kData, "{}column {}: the stream's schema is malformed: it is NULL", prefix(),
           i + 1);
    const char* const name = schema_->children[i]->name;
    names_.emplace_back(name == nullptr ? "" : name);
  }
  is_open_ = true;
}

const ArrowSchema& ArrowStream::FieldOf(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  CHECK(found != names_.end());
  return field(static_cast<size_t>(found - names_.begin()));
}

bool ArrowStream::Next() {
  if (batch_.holds()) rows_ += batch_->length;
  if (const int error = stream_->get_next(stream_, batch_.Out()); error != 0) FailToRead(error);
  if (!batch_.holds()) return false;
  if (batch_->n_children != std::ssize(names_) || batch_->length < 0 || batch_->offset < 0)
    Fail(ErrorCode::kData, "{}after {} the stream has a batch of {}, not {}", prefix(),
         Counted(rows_, "row"), Counted(batch_->n_children, "column"), names_.size());
  if (batch_->length > std::numeric_limits<int64_t>::max() - batch_->offset)
    Fail(ErrorCode::kData, "{}after {} the stream has a malformed batch: {} from {} on", prefix(),
         Counted(rows_, "row"), Counted(batch_->length, "row"), batch_->offset);
  if (batch_->n_children > 0 && batch_->children == nullptr)
    Fail(ErrorCode::kData, "{}after {} the stream has a malformed batch: its columns are NULL",
         prefix(), Counted(rows_, "row"));
  return true;
}

void ArrowStream::CheckRows() const {
  if (const int64_t nulls = NullRows(*batch_); nulls > 0)
    Fail(ErrorCode::kData, "{}after {} the stream has a batch with {} null", prefix(),
         Counted(rows_, "row"),
         nulls == 1 ? "a row that is" : fmt::format("{} rows that are", nulls));
}

// Libraries make EIO of damaged data, too: only where the text has an errno has the system failed.
void ArrowStream::FailToRead(int error) const {
  const char* const said =
      stream_->get_last_error == nullptr ? nullptr : stream_->get_last_error(stream_);
  std::string_view text = said == nullptr ? "" : said;
  const bool system_failed = text.find("[errno ") != std::string_view::npos ||
                             text.find("[Errno ") != std::string_view::npos;
  const ErrorCode code = error == ENOMEM ? ErrorCode::kOsError
                         : system_failed ? ErrorCode::kIo
                                         : ErrorCode::kData;
  // PyArrow appends a traceback.
  text = text.substr(0, text.find(". Detail: Python exception"));
  const std::string reason = text.empty() ? std::strerror(error) : Escape(text);
  const char* const advice = code != ErrorCode::kData ? "try again"
                             : is_file() ? "the file is damaged: write it again, or leave it out"
                                         : "mend what makes the rows, then try again";
  const std::string what =
      is_open_ ? fmt::format("failed after {}", Counted(rows_, "row")) : "gives no columns";
  Fail(code, "{}{} {}: {}; nothing was written: {}", prefix(), is_file() ? "reading" : "the stream",
       what, reason, advice);
}

}  // namespace renzan
