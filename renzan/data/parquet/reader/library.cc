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

// Throws kData if its parts have other numbers of rows than the file says.
void CheckRows(parquet::arrow::FileReader& reader, const std::string& path) {
  const std::shared_ptr<parquet::FileMetaData> metadata = reader.parquet_reader()->metadata();
  int64_t rows = 0;
  for (int i = 0; i < metadata->num_row_groups(); ++i) rows += metadata->RowGroup(i)->num_rows();
  if (rows != metadata->num_rows())
    Fail(ErrorCode::kData, "{}: cannot be read as Parquet: it says {}, and its row groups have {}",
         path, Counted(metadata->num_rows(), "row"), rows);
}

// The columns of Parquet that make up one of the table.
void AddLeaves(const SchemaField& field, std::vector<int>* leaves) {
  if (field.is_leaf()) leaves->push_back(field.column_index);
  for (const SchemaField& child : field.children) AddLeaves(child, leaves);
}

// Opens the file when the first batch is read: there may be many files.
class ParquetBatches : public arrow::RecordBatchReader {
 public:
  ParquetBatches(std::string path, const arrow::Schema& schema, std::vector<bool> used)
      : path_(std::move(path)), used_(std::move(used)) {
    arrow::FieldVector fields;
    for (size_t i = 0; i < used_.size(); ++i) {
      const auto& field = schema.field(static_cast<int>(i));
      fields.push_back(used_[i] ? field : arrow::field(field->name(), arrow::null()));
    }
    schema_ = arrow::schema(std::move(fields));
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    batch->reset();
    if (is_done_) return arrow::Status::OK();
    if (batches_ == nullptr) ARROW_RETURN_NOT_OK(Open());
    ARROW_RETURN_NOT_OK(batches_->ReadNext(batch));
    if (*batch == nullptr) {
      is_done_ = true;
      batches_.reset();  // before the file, which it reads
      file_.reset();
      return arrow::Status::OK();
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
  arrow::Status Open() {
    try {
      file_ = OpenParquet(path_);
    } catch (const Error& error) {  // it could be opened before
      return arrow::Status::IOError(error.what());
    }
    std::vector<int> leaves, groups;
    for (size_t i = 0; i < used_.size(); ++i)
      if (used_[i]) AddLeaves(file_->manifest().schema_fields[i], &leaves);
    for (int i = 0; i < file_->num_row_groups(); ++i) groups.push_back(i);
    ARROW_ASSIGN_OR_RAISE(batches_, file_->GetRecordBatchReader(groups, leaves));
    return arrow::Status::OK();
  }

  const std::string path_;
  const std::vector<bool> used_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;  // of file_
  bool is_done_ = false;
};

}  // namespace
}  // namespace renzan

extern "C" {

[[gnu::visibility("default")]] const char* renzan_parquet_build() { return renzan::BuildId(); }

[[gnu::visibility("default")]] void renzan_parquet_open(const renzan::ParquetFile* file,
                                                        ArrowArrayStream* stream) {
  using namespace renzan;
  const auto reader = OpenParquet(file->path);
  const std::shared_ptr<arrow::Schema> schema = SchemaOf(*reader, file->path);
  CheckRows(*reader, file->path);
  auto batches =
      std::make_shared<ParquetBatches>(file->path, *schema, file->uses(schema->field_names()));
  if (const arrow::Status exported = arrow::ExportRecordBatchReader(std::move(batches), stream);
      !exported.ok())
    Fail(ErrorCode::kSoftware, "Arrow cannot export Parquet files: {}", TextOf(exported));
}
}  // extern "C"
