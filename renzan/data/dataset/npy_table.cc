#include "renzan/data/dataset/npy_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/utf8.h"

namespace renzan {
namespace {

constexpr size_t kMostHeaderCharacters = 10'000;  // numpy.load's max_header_size
constexpr int64_t kMostRowBytes = std::numeric_limits<int32_t>::max();

// The first character, which has `bytes` bytes.
char32_t FirstCharacter(std::string_view text, size_t bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (bytes == 1) return byte(0);
  char32_t character = byte(0) & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) character = character << 6 | (byte(i) & 0x3fu);
  return character;
}

// Calls visit(character) for each. Bytes that are no UTF-8 stand for themselves.
template <typename Visit>
void ForEachCharacter(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const size_t bytes = std::max<size_t>(1, FirstUtf8Bytes(text));
    visit(FirstCharacter(text, bytes));
    text.remove_prefix(bytes);
  }
}

// As a literal of Python, in ASCII.
std::string PythonText(std::string_view text) {
  std::string literal = "'";
  ForEachCharacter(text, [&](char32_t character) {
    const auto code = static_cast<uint32_t>(character);
    if (code == '\'' || code == '\\')
      literal += fmt::format("\\{}", static_cast<char>(code));
    else if (code >= ' ' && code < 0x7f)
      literal += static_cast<char>(code);
    else if (code <= 0xffff)
      literal += fmt::format("\\u{:04x}", code);
    else
      literal += fmt::format("\\U{:08x}", code);
  });
  return literal + "'";
}

int64_t BytesOf(const NpyField& field) {
  switch (field.type) {
    case NpyField::Type::kFloat:
      return 4;
    case NpyField::Type::kInt64:
      return 8;
    case NpyField::Type::kText:
      return 4 * field.width;
    case NpyField::Type::kBytes:
      return field.width;
  }
  CHECK_MSG(false, "unknown type of a field");
}

std::string TypeText(const NpyField& field) {
  switch (field.type) {
    case NpyField::Type::kFloat:
      return "<f4";
    case NpyField::Type::kInt64:
      return "<i8";
    case NpyField::Type::kText:
      return fmt::format("<U{}", field.width);
    case NpyField::Type::kBytes:
      return fmt::format("|S{}", field.width);
  }
  CHECK_MSG(false, "unknown type of a field");
}

// What the file begins with, padded so that it has room for any number of rows.
std::string HeaderOf(const std::string& descr, int64_t rows) {
  const auto dict = [&](int64_t count) {
    return fmt::format("{{'descr': [{}], 'fortran_order': False, 'shape': ({},), }}", descr, count);
  };
  constexpr size_t kBefore = 10, kAlignment = 64;
  const size_t most = kBefore + dict(std::numeric_limits<int64_t>::max()).size() + 1;
  const size_t text = (most + kAlignment - 1) / kAlignment * kAlignment - kBefore;
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text & 0xff);
  header += static_cast<char>(text >> 8);
  header += dict(rows);
  header.resize(kBefore + text - 1, ' ');
  return header + '\n';
}

std::string DescrOf(const std::vector<NpyField>& fields, const std::string& path) {
  std::vector<std::string> all;
  int64_t bytes = 0;
  for (const NpyField& field : fields) {
    CHECK(field.width >= 1);
    all.push_back(fmt::format("({}, '{}')", PythonText(field.name), TypeText(field)));
    bytes += BytesOf(field);
  }
  const std::string descr = fmt::format("{}", fmt::join(all, ", "));
  if (bytes > kMostRowBytes)
    Fail(ErrorCode::kUsage,
         "{}: a row would have {} bytes, because each has the room of the longest text, and NumPy "
         "reads at most {}: write .parquet or .csv",
         path, bytes, kMostRowBytes);
  if (HeaderOf(descr, 0).size() > kMostHeaderCharacters)
    Fail(ErrorCode::kUsage,
         "{}: the names of {} columns do not fit into the {} characters that NumPy reads: write "
         "fewer columns, .parquet or .csv",
         path, fields.size(), kMostHeaderCharacters);
  return descr;
}

template <typename Number>
void AppendBytes(Number value, std::string* row) {
  row->append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

int64_t CountCharacters(std::string_view text) {
  int64_t count = 0;
  ForEachCharacter(text, [&](char32_t) { ++count; });
  return count;
}

NpyTableWriter::NpyTableWriter(std::string path, std::vector<NpyField> fields)
    : fields_(std::move(fields)), descr_(DescrOf(fields_, path)), file_(std::move(path)) {
  file_.Write(HeaderOf(descr_, 0));
}

void NpyTableWriter::Next(size_t field, bool has_type) {
  CHECK(field == next_ && has_type);
  ++next_;
}

void NpyTableWriter::Append(size_t field, float value) {
  Next(field, fields_[field].type == NpyField::Type::kFloat);
  AppendBytes(value, &row_);
}

void NpyTableWriter::Append(size_t field, int64_t value) {
  Next(field, fields_[field].type == NpyField::Type::kInt64);
  AppendBytes(value, &row_);
}

void NpyTableWriter::Append(size_t field, std::string_view value) {
  const NpyField& its = fields_[field];
  const bool is_text = its.type == NpyField::Type::kText;
  Next(field, is_text || its.type == NpyField::Type::kBytes);
  CHECK(value.empty() || value.back() != '\0');
  const size_t end = row_.size() + static_cast<size_t>(BytesOf(its));
  if (is_text)
    ForEachCharacter(
        value, [&](char32_t character) { AppendBytes(static_cast<uint32_t>(character), &row_); });
  else
    row_ += value;
  CHECK(row_.size() <= end);
  row_.resize(end, '\0');
}

void NpyTableWriter::EndRow() {
  CHECK(next_ == fields_.size());
  file_.Write(row_);
  row_.clear();
  next_ = 0;
  ++rows_;
}

void NpyTableWriter::Close() {
  const std::string header = HeaderOf(descr_, rows_);
  file_.WriteAt(0, header.data(), header.size());
  file_.Close();
}

}  // namespace renzan
