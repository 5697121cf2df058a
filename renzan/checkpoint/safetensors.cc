#include "renzan/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/sha256.h"

namespace renzan {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensor data are written as they are");

constexpr uint64_t kAlignment = 8;
// The format's own limit; a larger number means that the file is something else.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr const char* kMetadataKey = "__metadata__";

// Every level of a header: the file, a tensor, a list of numbers.
constexpr int kMaxJsonDepth = 3;

std::string HeaderOf(const std::vector<TensorInfo>& tensors,
                     const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    CHECK_MSG(!header.contains(tensor.key), "tensor '{}' is given twice", tensor.key);
    const uint64_t end = offset + static_cast<uint64_t>(NumElements(tensor.shape)) * sizeof(float);
    header[tensor.key] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

// nlohmann-json keeps the last of two equal keys silently; here that is damage.
Json ParseHeader(std::string_view text) {
  std::vector<std::set<std::string>> keys(kMaxJsonDepth + 1);
  const auto check = [&keys](int depth, Json::parse_event_t event, Json& value) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (opens && depth >= kMaxJsonDepth) Fail(ErrorCode::kData, "its header is nested too deeply");
    if (event == Json::parse_event_t::object_start) keys[static_cast<size_t>(depth) + 1].clear();
    if (event == Json::parse_event_t::key &&
        !keys[static_cast<size_t>(depth)].insert(value.get<std::string>()).second)
      Fail(ErrorCode::kData, "its header has the key '{}' twice", value.get<std::string>());
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception&) {
    Fail(ErrorCode::kData, "its header is not valid JSON");
  }
}

// A whole number from 0 to 2^62, so that sums of two cannot overflow.
int64_t WholeNumber(const Json& value, const std::string& key) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{1} << 62)
    Fail(ErrorCode::kData, "tensor '{}' has a size or an offset that is not a whole number", key);
  return static_cast<int64_t>(value.get<uint64_t>());
}

struct HeaderEntry {
  TensorInfo info;
  int64_t begin = 0, end = 0;
};

HeaderEntry ParseEntry(const std::string& key, const Json& value) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets") || !value["shape"].is_array() ||
      !value["data_offsets"].is_array() || value["data_offsets"].size() != 2)
    Fail(ErrorCode::kData, "tensor '{}' lacks one of dtype, shape and data_offsets", key);
  if (value["dtype"] != "F32")
    Fail(ErrorCode::kData, "tensor '{}' has dtype {}; only F32 is read here", key,
         value["dtype"].dump());
  HeaderEntry entry{.info = {.key = key, .shape = {}}};
  entry.begin = WholeNumber(value["data_offsets"][0], key);
  entry.end = WholeNumber(value["data_offsets"][1], key);
  bool empty = false;
  for (const Json& dimension : value["shape"]) {
    entry.info.shape.push_back(WholeNumber(dimension, key));
    empty = empty || entry.info.shape.back() == 0;
  }
  int64_t bytes = empty ? 0 : sizeof(float);
  for (const int64_t dimension : entry.info.shape)
    if (__builtin_mul_overflow(bytes, dimension, &bytes))
      Fail(ErrorCode::kData, "tensor '{}' has an impossible shape", key);
  if (entry.end - entry.begin != bytes)
    Fail(ErrorCode::kData, "tensor '{}' has {} bytes, but its shape {} needs {}", key,
         entry.end - entry.begin, ShapeText(entry.info.shape), bytes);
  return entry;
}

}  // namespace

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) elements *= dimension;
  return elements;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

struct SafetensorsWriter::State {
  explicit State(const std::string& path) : file(path) {}

  void Write(const void* data, size_t bytes) {
    file_hash.Update(data, bytes);
    file.Write(data, bytes);
  }

  // Ends the tensors that are complete: several at once where some are empty.
  void FinishTensors() {
    while (tensor_sha256.size() < tensors.size() && remaining == 0) {
      tensor_sha256.push_back(std::exchange(tensor_hash, Sha256()).HexDigest());
      if (tensor_sha256.size() < tensors.size())
        remaining = static_cast<size_t>(NumElements(tensors[tensor_sha256.size()].shape));
    }
  }

  FileWriter file;
  std::vector<TensorInfo> tensors;
  size_t remaining = 0;  // values of the current tensor that are still to come
  Sha256 file_hash, tensor_hash;
  std::string file_sha256;
  std::vector<std::string> tensor_sha256;
};

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<TensorInfo> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : state_(std::make_unique<State>(path)) {
  const std::string header = HeaderOf(tensors, metadata);
  const uint64_t header_bytes = header.size();
  state_->Write(&header_bytes, sizeof(header_bytes));
  state_->Write(header.data(), header.size());
  state_->tensors = std::move(tensors);
  if (!state_->tensors.empty())
    state_->remaining = static_cast<size_t>(NumElements(state_->tensors[0].shape));
  state_->FinishTensors();
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::Append(std::span<const float> values) {
  // Small enough that the second digest finds its bytes in the cache.
  constexpr size_t kPiece = 1 << 16;
  while (!values.empty()) {
    const size_t n = std::min({values.size(), state_->remaining, kPiece});
    CHECK_MSG(n > 0, "more values than {}'s tensors hold", state_->file.path());
    state_->tensor_hash.Update(values.data(), n * sizeof(float));
    state_->Write(values.data(), n * sizeof(float));
    values = values.subspan(n);
    state_->remaining -= n;
    state_->FinishTensors();
  }
}

void SafetensorsWriter::Close() {
  CHECK_MSG(state_->tensor_sha256.size() == state_->tensors.size(),
            "{} values missing at the end of {}", state_->remaining, state_->file.path());
  state_->file.Close();
  state_->file_sha256 = state_->file_hash.HexDigest();
}

uint64_t SafetensorsWriter::bytes() const { return state_->file.bytes_written(); }
const std::string& SafetensorsWriter::file_sha256() const { return state_->file_sha256; }
const std::vector<std::string>& SafetensorsWriter::tensor_sha256() const {
  return state_->tensor_sha256;
}

SafetensorsReader::SafetensorsReader(const std::string& path) : path_(path), file_(path) {
  try {
    const std::span<const std::byte> bytes = file_.bytes();
    uint64_t header_bytes = 0;
    if (bytes.size() < sizeof(header_bytes)) Fail(ErrorCode::kData, "it is too short");
    std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
    if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - sizeof(header_bytes))
      Fail(ErrorCode::kData, "its header's length {} does not fit the file's {} bytes",
           header_bytes, bytes.size());
    if (header_bytes % sizeof(float) != 0)
      Fail(ErrorCode::kData, "its data do not begin at a multiple of {} bytes", sizeof(float));
    const char* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(header_bytes);
    const std::span<const std::byte> data = bytes.subspan(sizeof(header_bytes) + header_bytes);
    const Json header = ParseHeader({text, header_bytes});
    if (!header.is_object()) Fail(ErrorCode::kData, "its header is not a JSON object");

    std::vector<HeaderEntry> entries;
    for (const auto& [key, value] : header.items()) {
      if (key != kMetadataKey) {
        entries.push_back(ParseEntry(key, value));
        continue;
      }
      if (!value.is_object()) Fail(ErrorCode::kData, "{} is not a JSON object", kMetadataKey);
      for (const auto& [name, item] : value.items()) {
        if (!item.is_string()) Fail(ErrorCode::kData, "{} holds more than text", kMetadataKey);
        metadata_[name] = item.get<std::string>();
      }
    }
    std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    int64_t offset = 0;
    for (HeaderEntry& entry : entries) {
      if (entry.begin != offset)
        Fail(ErrorCode::kData, "tensor '{}' begins at {} where {} is expected: a gap or an overlap",
             entry.info.key, entry.begin, offset);
      offset = entry.end;
      if (static_cast<uint64_t>(offset) > data.size())
        Fail(ErrorCode::kData, "tensor '{}' ends beyond the end of the file: was it cut short?",
             entry.info.key);
      const auto* values = reinterpret_cast<const float*>(data.data() + entry.begin);
      index_[entry.info.key] = tensors_.size();
      tensors_.push_back({std::move(entry.info),
                          {values, static_cast<size_t>(entry.end - entry.begin) / sizeof(float)}});
    }
    if (static_cast<uint64_t>(offset) != data.size())
      Fail(ErrorCode::kData, "it has {} bytes beyond its last tensor",
           data.size() - static_cast<uint64_t>(offset));
  } catch (const Error& error) {
    throw error.WithContext(fmt::format("{} is not a sound safetensors file", path));
  }
}

const SafetensorsReader::Tensor* SafetensorsReader::Find(const std::string& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace renzan
