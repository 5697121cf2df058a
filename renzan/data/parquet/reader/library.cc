// librenzan_parquet.so

#include "renzan/data/parquet/reader/library.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include <memory>
#include <utility>

#include "renzan/base/build_id.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"

namespace renzan {
namespace {

using parquet::arrow::SchemaField;

// Without what Arrow adds of its own sources.
std::string TextOf(const arrow::Status& status) { return Escape(status.message()); }

std::unique_ptr<parquet::arrow::FileReader> OpenParquet(const std::string& path) {
  parquet::ArrowReaderProperties properties(/*use_threads=*/false);
  properties.set_pre_buffer(false);  // which would keep the whole file in memory
  try {
    parquet::arrow::FileReaderBuilder builder;
    if (const arrow::Status opened = builder.OpenFile(path); !opened.ok())
      Fail(opened.IsIOError() ? ErrorCode::kNoInput : ErrorCode::kData,
           "{}: cannot be read as Parquet: {}", path, TextOf(opened));
    auto reader = builder.properties(properties)->Build();
    if (!reader.ok())
      Fail(ErrorCode::kData, "{}: cannot be read as Parquet: {}", path, TextOf(reader.status()));
    return *std::move(reader);
  } catch (const parquet::ParquetException& failure) {
    Fail(ErrorCode::kData, "{}: cannot be read as Parquet: {}", path, Escape(failure.what()));
  }
}

std::shared_ptr<arrow::Schema> SchemaOf(parquet::arrow::FileReader& reader,
                                        const std::string& path) {
  std::shared_ptr<arrow::Schema> schema;
  if (const arrow::Status got = reader.GetSchema(&schema); !got.ok())
    Fail(ErrorCode::kData, "{}: {}", path, TextOf(got));
  return schema;
}

// Its columns must be those of the first file, those that are used with the same types.
void CheckSame(const arrow::Schema& schema, const std::string& path, const arrow::Schema& first,
               const std::string& first_path, const std::vector<bool>& used) {
  const auto names = [](const arrow::Schema& all) {
    return Escape(fmt::format("{}", fmt::join(all.field_names(), ", ")));
  };
  if (schema.field_names() != first.field_names())
    Fail(ErrorCode::kData, "{}: has the columns {}, and {} has {}: give all files the same", path,
         names(schema), first_path, names(first));
  for (int i = 0; i < first.num_fields(); ++i)
    if (used[static_cast<size_t>(i)] && !schema.field(i)->type()->Equals(first.field(i)->type()))
      Fail(ErrorCode::kData, "{}: column '{}' has the type {}, and {} in {}: cast one of them",
           path, Escape(first.field(i)->name()), schema.field(i)->type()->ToString(),
           first.field(i)->type()->ToString(), first_path);
}

// Throws kData if its parts have other numbers of rows than the file says.
int64_t RowsOf(parquet::arrow::FileReader& reader, const std::string& path) {
  const std::shared_ptr<parquet::FileMetaData> metadata = reader.parquet_reader()->metadata();
  int64_t rows = 0;
  for (int i = 0; i < metadata->num_row_groups(); ++i) rows += metadata->RowGroup(i)->num_rows();
  if (rows != metadata->num_rows())
    Fail(ErrorCode::kData, "{}: cannot be read as Parquet: it says {}, and its row groups have {}",
         path, Counted(metadata->num_rows(), "row"), rows);
  return rows;
}

// The columns of Parquet that make up one of the table.
void AddLeaves(const SchemaField& field, std::vector<int>* leaves) {
  if (field.is_leaf()) leaves->push_back(field.column_index);
  for (const SchemaField& child : field.children) AddLeaves(child, leaves);
}

class ParquetBatches : public arrow::RecordBatchReader {
 public:
  ParquetBatches(std::vector<std::string> paths, std::shared_ptr<arrow::Schema> schema,
                 std::vector<bool> used)
      : paths_(std::move(paths)), used_(std::move(used)) {
    arrow::FieldVector fields;
    for (size_t i = 0; i < used_.size(); ++i) {
      const auto& field = schema->field(static_cast<int>(i));
      fields.push_back(used_[i] ? field : arrow::field(field->name(), arrow::null()));
    }
    schema_ = arrow::schema(std::move(fields));
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    batch->reset();
    for (;;) {
      if (batches_ != nullptr) ARROW_RETURN_NOT_OK(OfFile(batches_->ReadNext(batch)));
      if (*batch != nullptr) break;
      batches_.reset();
      if (next_ == paths_.size()) return arrow::Status::OK();
      ARROW_RETURN_NOT_OK(OpenNext());
    }
    // Arrow leaves out columns that are not read.
    arrow::ArrayVector columns;
    int read = 0;
    for (const bool used : used_)
      columns.push_back(used ? (*batch)->column(read++)
                             : std::make_shared<arrow::NullArray>((*batch)->num_rows()));
    *batch = arrow::RecordBatch::Make(schema_, (*batch)->num_rows(), std::move(columns));
    return arrow::Status::OK();
  }

 private:
  // With the file's name.
  arrow::Status OfFile(const arrow::Status& status) const {
    return status.ok() ? status : status.WithMessage(paths_[next_ - 1] + ": " + status.message());
  }

  arrow::Status OpenNext() {
    try {
      file_ = OpenParquet(paths_[next_++]);
    } catch (const Error& error) {  // it could be opened before
      return arrow::Status::IOError(error.what());
    }
    std::vector<int> leaves, groups;
    for (size_t i = 0; i < used_.size(); ++i)
      if (used_[i]) AddLeaves(file_->manifest().schema_fields[i], &leaves);
    for (int i = 0; i < file_->num_row_groups(); ++i) groups.push_back(i);
    auto batches = file_->GetRecordBatchReader(groups, leaves);
    if (batches.ok()) batches_ = *std::move(batches);
    return OfFile(batches.status());
  }

  const std::vector<std::string> paths_;
  const std::vector<bool> used_;
  std::shared_ptr<arrow::Schema> schema_;
  size_t next_ = 0;  // the next file
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;  // of file_
};

}  // namespace
}  // namespace renzan

extern "C" {

[[gnu::visibility("default")]] const char* renzan_parquet_build() { return renzan::BuildId(); }

[[gnu::visibility("default")]] void renzan_parquet_open(const renzan::ParquetFiles* files,
                                                        ArrowArrayStream* stream,
                                                        std::vector<int64_t>* rows) {
  using namespace renzan;
  std::shared_ptr<arrow::Schema> first;
  std::vector<bool> used;
  CHECK(!files->paths.empty());
  for (const std::string& path : files->paths) {
    const auto file = OpenParquet(path);
    const auto schema = SchemaOf(*file, path);
    if (first == nullptr) {
      first = schema;
      used = files->uses(first->field_names());
    }
    CheckSame(*schema, path, *first, files->paths[0], used);
    rows->push_back(RowsOf(*file, path));
  }
  auto batches = std::make_shared<ParquetBatches>(files->paths, first, std::move(used));
  if (const arrow::Status exported = arrow::ExportRecordBatchReader(std::move(batches), stream);
      !exported.ok())
    Fail(ErrorCode::kSoftware, "Arrow cannot export Parquet files: {}", TextOf(exported));
}
}  // extern "C"
