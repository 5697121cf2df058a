#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/sha256.h"
#include "renzan/base/xxhash.h"
#include "renzan/checkpoint/safetensors.h"

namespace renzan {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data are written as they are");

std::string HeaderOf(const std::vector<TensorInfo>& tensors,
                     const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    CHECK_MSG(!header.contains(tensor.key), "tensor '{}' is given twice", tensor.key);
    CHECK_MSG(offset % BytesOf(tensor.dtype) == 0, "tensor '{}' does not begin at a multiple of {}",
              tensor.key, BytesOf(tensor.dtype));
    const uint64_t end = offset + NumBytes(tensor);
    header[tensor.key] = {
        {"dtype", Name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize(
      (text.size() + kSafetensorsAlignment - 1) / kSafetensorsAlignment * kSafetensorsAlignment,
      ' ');
  return text;
}

}  // namespace

struct SafetensorsWriter::State {
  State(const std::string& path, bool hash_tensors)
      : file(Storage::Of(path).Create(path)), hash_tensors(hash_tensors) {}

  void Write(const void* data, size_t bytes) {
    file_hash.Update(data, bytes);
    file->Write(data, bytes);
  }

  // Finishes the complete tensors: several in one call if some are empty.
  void FinishTensors() {
    while (tensor_sha256.size() < tensors.size() && remaining == 0) {
      tensor_sha256.push_back(hash_tensors ? std::exchange(tensor_hash, Sha256()).HexDigest() : "");
      if (tensor_sha256.size() < tensors.size())
        remaining = NumBytes(tensors[tensor_sha256.size()]);
    }
  }

  std::unique_ptr<OutputFile> file;
  bool hash_tensors;
  std::vector<TensorInfo> tensors;
  size_t remaining = 0;  // bytes of the current tensor still to be written
  Xxh128 file_hash;
  Sha256 tensor_hash;
  std::string file_xxh128;
  std::vector<std::string> tensor_sha256;
};

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<TensorInfo> tensors,
                                     const Options& options)
    : state_(std::make_unique<State>(path, options.hash_tensors)) {
  const std::string header = HeaderOf(tensors, options.metadata);
  const uint64_t header_bytes = header.size();
  state_->Write(&header_bytes, sizeof(header_bytes));
  state_->Write(header.data(), header.size());
  state_->tensors = std::move(tensors);
  if (!state_->tensors.empty()) state_->remaining = NumBytes(state_->tensors[0]);
  state_->FinishTensors();
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  // Small enough to stay in the cache between hashing and writing.
  constexpr size_t kPiece = 1 << 18;
  while (!bytes.empty()) {
    const size_t n = std::min({bytes.size(), state_->remaining, kPiece});
    CHECK_MSG(n > 0, "more values than the tensors of {} hold", state_->file->path());
    if (state_->hash_tensors) state_->tensor_hash.Update(bytes.data(), n);
    state_->Write(bytes.data(), n);
    bytes = bytes.subspan(n);
    state_->remaining -= n;
    state_->FinishTensors();
  }
}

void SafetensorsWriter::Close() {
  CHECK_MSG(state_->tensor_sha256.size() == state_->tensors.size(),
            "{} bytes missing at the end of {}", state_->remaining, state_->file->path());
  state_->file->Close();
  state_->file_xxh128 = state_->file_hash.HexDigest();
}

uint64_t SafetensorsWriter::bytes() const { return state_->file->bytes_written(); }
const std::string& SafetensorsWriter::file_xxh128() const { return state_->file_xxh128; }
const std::vector<std::string>& SafetensorsWriter::tensor_sha256() const {
  return state_->tensor_sha256;
}

}  // namespace renzan
