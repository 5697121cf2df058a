#include "renzan/data/parquet/parquet_writer.h"

#include <bit>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/data/parquet/compact_thrift.h"

// The structs, their fields and their constants are those of parquet.thrift, format version 2.

namespace renzan {
namespace {

using Type = ParquetColumn::Type;

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kParquetMagic = "PAR1";

// enum Type
int PhysicalType(Type type) {
  switch (type) {
    case Type::kInt64:
      return 2;
    case Type::kFloat:
      return 4;
    case Type::kText:
    case Type::kBytes:
      return 6;
  }
  CHECK_MSG(false, "not a type of Parquet columns");
}

constexpr int kPlain = 0, kRle = 3;  // enum Encoding
constexpr int kUncompressed = 0;     // enum CompressionCodec
constexpr int kRequired = 0;         // enum FieldRepetitionType
constexpr int kUtf8 = 0;             // enum ConvertedType
constexpr int kDataPage = 0;         // enum PageType

template <typename T>
void AppendLittleEndian(T value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// struct PageHeader
std::string PageHeader(int64_t bytes, int64_t values) {
  CompactThriftWriter page;
  page.I32(1, kDataPage);
  page.I32(2, static_cast<int32_t>(bytes));  // uncompressed_page_size
  page.I32(3, static_cast<int32_t>(bytes));  // compressed_page_size
  page.BeginStruct(5);                       // data_page_header
  page.I32(1, static_cast<int32_t>(values));
  page.I32(2, kPlain);
  page.I32(3, kRle);  // of definition levels, and of repetition levels: columns have none
  page.I32(4, kRle);
  page.EndStruct();
  return page.Finish();
}

void WriteSchema(const std::vector<ParquetColumn>& columns, CompactThriftWriter* file) {
  file->BeginList(2, CompactThriftWriter::Of::kStruct, columns.size() + 1);
  file->BeginElementStruct();
  file->Text(4, "schema");
  file->I32(5, static_cast<int32_t>(columns.size()));
  file->EndStruct();
  for (const ParquetColumn& column : columns) {
    file->BeginElementStruct();
    file->I32(1, PhysicalType(column.type));
    file->I32(3, kRequired);
    file->Text(4, column.name);
    if (column.type == Type::kText) {
      file->I32(6, kUtf8);
      file->BeginStruct(10);  // logicalType
      file->BeginStruct(1);   // STRING
      file->EndStruct();
      file->EndStruct();
    }
    file->EndStruct();
  }
}

}  // namespace

ParquetWriter::ParquetWriter(std::string path, std::vector<ParquetColumn> columns,
                             size_t row_group_bytes)
    : file_(std::move(path)),
      columns_(std::move(columns)),
      row_group_bytes_(row_group_bytes),
      values_(columns_.size()) {
  file_.Write(kParquetMagic);
}

ParquetWriter::Values& ParquetWriter::Next(size_t column, bool has_type) {
  Values& values = values_.at(column);
  CHECK_MSG(has_type, "a value of another type than the column's");
  CHECK_MSG(values.count == rows_, "two values of a row in one column");
  ++values.count;
  return values;
}

void ParquetWriter::Append(size_t column, float value) {
  AppendLittleEndian(value, &Next(column, columns_[column].type == Type::kFloat).bytes);
  buffered_bytes_ += sizeof value;
}

void ParquetWriter::Append(size_t column, int64_t value) {
  AppendLittleEndian(value, &Next(column, columns_[column].type == Type::kInt64).bytes);
  buffered_bytes_ += sizeof value;
}

void ParquetWriter::Append(size_t column, std::string_view value) {
  const Type type = columns_[column].type;
  std::string& bytes = Next(column, type == Type::kText || type == Type::kBytes).bytes;
  AppendLittleEndian(static_cast<uint32_t>(value.size()), &bytes);
  bytes += value;
  buffered_bytes_ += sizeof(uint32_t) + value.size();
}

void ParquetWriter::EndRow() {
  ++rows_;
  for (const Values& values : values_) CHECK_MSG(values.count == rows_, "a row lacks a value");
  if (buffered_bytes_ >= row_group_bytes_) FlushRowGroup();
}

// One page in each column chunk: a row group is not larger than other writers' pages may be.
void ParquetWriter::FlushRowGroup() {
  if (rows_ == 0) return;
  RowGroup group{.rows = rows_, .chunks = {}};
  for (Values& values : values_) {
    const auto offset = static_cast<int64_t>(file_.bytes_written());
    file_.Write(PageHeader(std::ssize(values.bytes), values.count));
    file_.Write(values.bytes);
    group.chunks.push_back(
        {.offset = offset, .bytes = static_cast<int64_t>(file_.bytes_written()) - offset});
    values.bytes.clear();
    values.count = 0;
  }
  row_groups_.push_back(std::move(group));
  rows_ = 0;
  buffered_bytes_ = 0;
}

// struct FileMetaData
std::string ParquetWriter::Metadata() const {
  using Of = CompactThriftWriter::Of;
  CompactThriftWriter file;
  file.I32(1, 1);  // version
  WriteSchema(columns_, &file);
  int64_t rows = 0;
  for (const RowGroup& group : row_groups_) rows += group.rows;
  file.I64(3, rows);
  file.BeginList(4, Of::kStruct, row_groups_.size());
  for (const RowGroup& group : row_groups_) {
    int64_t bytes = 0;
    file.BeginElementStruct();
    file.BeginList(1, Of::kStruct, columns_.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      const Chunk& chunk = group.chunks[c];
      bytes += chunk.bytes;
      file.BeginElementStruct();  // ColumnChunk
      file.I64(2, chunk.offset);
      file.BeginStruct(3);  // meta_data
      file.I32(1, PhysicalType(columns_[c].type));
      file.BeginList(2, Of::kI32, 1);
      file.ElementI32(kPlain);
      file.BeginList(3, Of::kText, 1);  // path_in_schema
      file.ElementText(columns_[c].name);
      file.I32(4, kUncompressed);
      file.I64(5, group.rows);
      file.I64(6, chunk.bytes);   // total_uncompressed_size
      file.I64(7, chunk.bytes);   // total_compressed_size
      file.I64(9, chunk.offset);  // data_page_offset
      file.EndStruct();
      file.EndStruct();
    }
    file.I64(2, bytes);
    file.I64(3, group.rows);
    file.EndStruct();
  }
  file.Text(6, "renzan version " RENZAN_VERSION);
  return file.Finish();
}

void ParquetWriter::Close() {
  FlushRowGroup();
  std::string end = Metadata();
  AppendLittleEndian(static_cast<uint32_t>(end.size()), &end);
  file_.Write(end);
  file_.Write(kParquetMagic);
  file_.Close();
}

}  // namespace renzan
