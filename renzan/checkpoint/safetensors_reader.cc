#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/checkpoint/safetensors.h"
#include "renzan/checkpoint/strict_json.h"

namespace renzan {

struct SafetensorsReader::Entry {
  TensorInfo info;
  int64_t begin = 0, end = 0;
};

namespace {

// The limit of the format; a larger number means that the file is something else.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// The nesting is header, tensor, list of numbers.
constexpr size_t kMaxHeaderDepth = 3;
constexpr const char* kMetadataKey = "__metadata__";

// A whole number from 0 to 2^62, so that sums of two cannot overflow.
int64_t WholeNumber(const nlohmann::json& value, const std::string& key) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{1} << 62)
    Fail(ErrorCode::kData, "tensor '{}' has a size or an offset that is not a whole number", key);
  return static_cast<int64_t>(value.get<uint64_t>());
}

TensorInfo ParseInfo(const std::string& key, const nlohmann::json& value) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value["dtype"].is_string() || !value.contains("shape") || !value["shape"].is_array() ||
      !value.contains("data_offsets") || !value["data_offsets"].is_array() ||
      value["data_offsets"].size() != 2)
    Fail(ErrorCode::kData, "tensor '{}' lacks one of dtype, shape and data_offsets", key);
  TensorInfo info{.key = key, .shape = {}, .dtype = DType::kF32};
  try {
    info.dtype = ParseDType(value["dtype"].get<std::string>());
  } catch (const Error& error) {
    throw error.WithContext(fmt::format("tensor '{}'", key));
  }
  for (const nlohmann::json& dimension : value["shape"])
    info.shape.push_back(WholeNumber(dimension, key));
  CheckShape(info);
  return info;
}

std::map<std::string, std::string> ParseMetadata(const nlohmann::json& value) {
  if (!value.is_object()) Fail(ErrorCode::kData, "{} is not a JSON object", kMetadataKey);
  std::map<std::string, std::string> metadata;
  for (const auto& [name, item] : value.items()) {
    if (!item.is_string())
      Fail(ErrorCode::kData, "{} holds values that are not strings", kMetadataKey);
    metadata[name] = item.get<std::string>();
  }
  return metadata;
}

}  // namespace

size_t SafetensorsReader::ParseHeader(std::vector<Entry>& entries) {
  const std::span<const std::byte> bytes = file_.bytes();
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof(header_bytes)) Fail(ErrorCode::kData, "it is too short");
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - sizeof(header_bytes))
    Fail(ErrorCode::kData, "its header's length {} does not fit the file's {} bytes", header_bytes,
         bytes.size());
  if (header_bytes % kSafetensorsAlignment != 0)
    Fail(ErrorCode::kData, "its data do not begin at a multiple of {} bytes",
         kSafetensorsAlignment);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof(header_bytes),
                              header_bytes);
  CheckStrictJson(text, kMaxHeaderDepth, "its header");
  const nlohmann::json header = nlohmann::json::parse(text);
  if (!header.is_object()) Fail(ErrorCode::kData, "its header is not a JSON object");
  for (const auto& [key, value] : header.items()) {
    if (key == kMetadataKey) {
      metadata_ = ParseMetadata(value);
      continue;
    }
    Entry entry{.info = ParseInfo(key, value)};
    entry.begin = WholeNumber(value["data_offsets"][0], key);
    entry.end = WholeNumber(value["data_offsets"][1], key);
    const int64_t needed = static_cast<int64_t>(NumBytes(entry.info));
    if (entry.end - entry.begin != needed)
      Fail(ErrorCode::kData, "tensor '{}' has {} bytes, but its shape {} needs {}", key,
           entry.end - entry.begin, ShapeText(entry.info.shape), needed);
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  return sizeof(header_bytes) + header_bytes;
}

SafetensorsReader::SafetensorsReader(const std::string& path)
    : local_(Storage::Of(path).Fetch(path)), file_(local_.local_path()) {
  try {
    std::vector<Entry> entries;
    const std::span<const std::byte> data = file_.bytes().subspan(ParseHeader(entries));
    int64_t offset = 0;
    for (Entry& entry : entries) {
      if (entry.begin != offset)
        Fail(ErrorCode::kData, "tensor '{}' begins at {} where {} is expected: a gap or an overlap",
             entry.info.key, entry.begin, offset);
      if (entry.begin % static_cast<int64_t>(BytesOf(entry.info.dtype)) != 0)
        Fail(ErrorCode::kData, "tensor '{}' does not begin at a multiple of {} bytes",
             entry.info.key, BytesOf(entry.info.dtype));
      offset = entry.end;
      if (static_cast<uint64_t>(offset) > data.size())
        Fail(ErrorCode::kData, "tensor '{}' ends beyond the end of the file: was it cut short?",
             entry.info.key);
      index_[entry.info.key] = tensors_.size();
      tensors_.push_back(
          {std::move(entry.info), data.subspan(static_cast<size_t>(entry.begin),
                                               static_cast<size_t>(entry.end - entry.begin))});
    }
    if (static_cast<uint64_t>(offset) != data.size())
      Fail(ErrorCode::kData, "it has {} bytes beyond its last tensor",
           data.size() - static_cast<uint64_t>(offset));
  } catch (const Error& error) {
    throw error.WithContext(fmt::format("{} is not a valid safetensors file", path));
  }
}

const SafetensorsReader::Tensor* SafetensorsReader::Find(const std::string& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace renzan
