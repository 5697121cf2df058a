#include "renzan/data/dataset/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/escape.h"

namespace renzan {
namespace {

struct TypeInfo {
  NpyType type;
  const char* name;
  const char* descr;
  int64_t bytes;
};

constexpr TypeInfo kTypes[] = {
    {NpyType::kFloat32, "float32", "<f4", 4}, {NpyType::kInt32, "int32", "<i4", 4},
    {NpyType::kInt64, "int64", "<i8", 8},     {NpyType::kUint8, "uint8", "|u1", 1},
    {NpyType::kUint64, "uint64", "<u8", 8},
};

const TypeInfo& Info(NpyType type) {
  for (const TypeInfo& info : kTypes)
    if (info.type == type) return info;
  CHECK_MSG(false, "unknown NpyType");
}

constexpr char kMagic[] = "\x93NUMPY\x01\x00";  // version 1.0
constexpr size_t kMagicBytes = 8;

// The text after "'key':" in the header's dictionary.
std::string_view ValueOf(std::string_view dict, std::string_view key, const std::string& path) {
  const std::string quoted = fmt::format("'{}':", key);
  const size_t at = dict.find(quoted);
  if (at == std::string_view::npos)
    Fail(ErrorCode::kData, "{}: not a valid .npy file: its header has no {}", path, quoted);
  dict.remove_prefix(at + quoted.size());
  while (!dict.empty() && dict.front() == ' ') dict.remove_prefix(1);
  return dict;
}

std::vector<int64_t> ParseShape(std::string_view text, const std::string& path) {
  std::vector<int64_t> shape;
  const size_t close = text.find(')');
  if (text.empty() || text.front() != '(' || close == std::string_view::npos)
    Fail(ErrorCode::kData, "{}: not a valid .npy file: its header has no shape", path);
  const char* at = text.data() + 1;
  const char* const end = text.data() + close;
  while (at < end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0)
      Fail(ErrorCode::kData, "{}: not a valid .npy file: bad shape {}", path,
           Escape(text.substr(0, close + 1)));
    shape.push_back(size);
    at = next;
  }
  return shape;
}

}  // namespace

const char* NpyTypeName(NpyType type) { return Info(type).name; }

std::optional<NpyType> NpyTypeFromName(std::string_view name) {
  for (const TypeInfo& info : kTypes)
    if (name == info.name) return info.type;
  return std::nullopt;
}

int64_t NpyTypeBytes(NpyType type) { return Info(type).bytes; }

std::string NpyHeader(NpyType type, std::span<const int64_t> shape) {
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", Info(type).descr);
  for (int64_t size : shape) dict += fmt::format("{}, ", size);
  if (shape.size() > 1)
    dict.resize(dict.size() - 2);
  else
    dict.pop_back();
  dict += "), }";
  const size_t text = kNpyHeaderBytes - kMagicBytes - 2;
  CHECK(dict.size() + 1 <= text);
  dict.resize(text - 1, ' ');
  dict += '\n';
  std::string header(kMagic, kMagicBytes);
  header += static_cast<char>(text & 0xff);
  header += static_cast<char>(text >> 8);
  return header + dict;
}

std::string FormatShape(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

NpyWriter::NpyWriter(std::string path, NpyType type, std::vector<int64_t> columns)
    : file_(std::move(path)),
      type_(type),
      columns_(std::move(columns)),
      row_bytes_(NpyTypeBytes(type)) {
  for (int64_t size : columns_) row_bytes_ *= size;
  file_.Write(NpyHeader(type_, shape()));
}

std::vector<int64_t> NpyWriter::shape() const {
  std::vector<int64_t> shape = {rows_};
  shape.insert(shape.end(), columns_.begin(), columns_.end());
  return shape;
}

void NpyWriter::Append(const void* data, int64_t rows) {
  file_.Write(data, static_cast<size_t>(rows * row_bytes_));
  rows_ += rows;
}

void NpyWriter::Close() {
  const std::string header = NpyHeader(type_, shape());
  file_.WriteAt(0, header.data(), header.size());
  file_.Close();
}

NpyArray::NpyArray(const std::string& path) : file_(path) {
  const std::string_view bytes(reinterpret_cast<const char*>(file_.bytes().data()), file_.size());
  if (bytes.size() < kMagicBytes + 2 || bytes.substr(0, kMagicBytes) != std::string_view(kMagic, 8))
    Fail(ErrorCode::kData, "{}: not a .npy file of version 1.0", path);
  const size_t header_bytes = static_cast<unsigned char>(bytes[kMagicBytes]) |
                              static_cast<size_t>(static_cast<unsigned char>(bytes[9])) << 8;
  const size_t data_offset = kMagicBytes + 2 + header_bytes;
  if (bytes.size() < data_offset)
    Fail(ErrorCode::kData, "{}: the file ends inside its .npy header", path);
  const std::string_view dict = bytes.substr(kMagicBytes + 2, header_bytes);

  const std::string_view descr = ValueOf(dict, "descr", path);
  const TypeInfo* const info =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeInfo& candidate) {
        return descr.substr(0, 5) == fmt::format("'{}'", candidate.descr);
      });
  if (info == std::end(kTypes))
    Fail(
        ErrorCode::kData,
        "{}: dtype {} is not supported: use float32, int32, int64, uint8 or uint64 (little-endian)",
        path, Escape(descr.substr(0, descr.find(','))));
  if (!ValueOf(dict, "fortran_order", path).starts_with("False"))
    Fail(ErrorCode::kData, "{}: the array is in Fortran order; save it in C order", path);
  type_ = info->type;
  shape_ = ParseShape(ValueOf(dict, "shape", path), path);

  num_elements_ = 1;
  for (int64_t size : shape_) {
    if (size != 0 && num_elements_ > std::numeric_limits<int64_t>::max() / 8 / size)
      Fail(ErrorCode::kData, "{}: impossible shape {}", path, FormatShape(shape_));
    num_elements_ *= size;
  }
  const uint64_t wanted = data_offset + static_cast<uint64_t>(num_elements_ * info->bytes);
  if (file_.size() != wanted)
    Fail(ErrorCode::kData, "{}: has {} bytes, but its header needs {} (truncated or corrupt?)",
         path, file_.size(), wanted);
  if (data_offset % static_cast<size_t>(info->bytes) != 0)
    Fail(ErrorCode::kData, "{}: the array's data is not aligned; save it again with numpy.save",
         path);
  data_offset_ = data_offset;
  data_ = file_.bytes().data() + data_offset;
}

const void* NpyArray::Data(NpyType wanted) const {
  CHECK(data_ == nullptr || wanted == type_);
  return data_;
}

}  // namespace renzan
