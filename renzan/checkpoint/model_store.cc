#include "renzan/checkpoint/model_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/config.h"
#include "renzan/base/error.h"
#include "renzan/base/sha256.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kFormat = "renzan-model";
constexpr int kVersion = 1;

Json ToJsonValue(const ModelFile& file) {
  Json tensors = Json::array();
  for (const ModelFile::Tensor& tensor : file.tensors)
    tensors.push_back({{"key", tensor.key}, {"shape", tensor.shape}, {"sha256", tensor.sha256}});
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"sha256", file.sha256},
          {"tensors", std::move(tensors)}};
}

ModelFile FromJsonValue(const Json& value) {
  ModelFile file;
  value.at("name").get_to(file.name);
  value.at("bytes").get_to(file.bytes);
  value.at("sha256").get_to(file.sha256);
  for (const Json& item : value.at("tensors")) {
    ModelFile::Tensor& tensor = file.tensors.emplace_back();
    item.at("key").get_to(tensor.key);
    item.at("shape").get_to(tensor.shape);
    item.at("sha256").get_to(tensor.sha256);
  }
  // A name that leads elsewhere would read a file that is no part of the model.
  if (file.name.empty() || file.name.find('/') != std::string::npos)
    Fail(ErrorCode::kData, "'{}' is not the name of a model's file", file.name);
  return file;
}

}  // namespace

std::string ModelFile::ToJson() const { return ToJsonValue(*this).dump(); }

ModelFile ModelFile::FromJson(std::string_view text) {
  try {
    return FromJsonValue(Json::parse(text));
  } catch (const Json::exception& error) {
    Fail(ErrorCode::kData, "not the description of a model's file: {}", error.what());
  }
}

ModelFile WriteModelFile(const std::string& staging, const std::string& name,
                         std::span<const NamedTensor> tensors) {
  std::vector<TensorInfo> infos;
  for (const NamedTensor& tensor : tensors) {
    CHECK_MSG(static_cast<size_t>(NumElements(tensor.shape)) == tensor.values.size(),
              "{}: {} values do not fill {}", tensor.key, tensor.values.size(),
              ShapeText(tensor.shape));
    infos.push_back({tensor.key, tensor.shape});
  }
  SafetensorsWriter writer(staging + "/" + name, infos);
  for (const NamedTensor& tensor : tensors) writer.Append(tensor.values);
  writer.Close();
  ModelFile file{
      .name = name, .bytes = writer.bytes(), .sha256 = writer.file_sha256(), .tensors = {}};
  for (size_t i = 0; i < infos.size(); ++i)
    file.tensors.push_back({infos[i].key, infos[i].shape, writer.tensor_sha256()[i]});
  return file;
}

std::string ModelSha256(std::span<const ModelFile> files, int64_t step) {
  std::map<std::string, std::string> lines;
  for (const ModelFile& file : files) {
    for (const ModelFile::Tensor& tensor : file.tensors) {
      const std::string line =
          fmt::format("{} {} {}\n", tensor.key, ShapeText(tensor.shape), tensor.sha256);
      if (!lines.emplace(tensor.key, line).second)
        Fail(ErrorCode::kData, "tensor '{}' is in two of the model's files", tensor.key);
    }
  }
  Sha256 hash;
  hash.Update(fmt::format("step {}\n", step));
  for (const auto& [key, line] : lines) hash.Update(line);
  return hash.HexDigest();
}

std::string ModelWriter::Commit(std::vector<ModelFile> files, int64_t step,
                                const std::string& config) {
  std::sort(files.begin(), files.end(),
            [](const ModelFile& a, const ModelFile& b) { return a.name < b.name; });
  const std::string model_sha256 = ModelSha256(files, step);
  Json list = Json::array();
  for (const ModelFile& file : files) list.push_back(ToJsonValue(file));
  const Json manifest = {{"format", kFormat},
                         {"version", kVersion},
                         {"step", step},
                         {"model_sha256", model_sha256},
                         {"files", std::move(list)},
                         {"config_sha256", Sha256Hex(config)},
                         {"config", config}};
  WriteFileAtomically(staging() + "/" + kManifest, manifest.dump(2) + "\n");
  staged_.Commit();
  return model_sha256;
}

ModelReader::ModelReader(const std::string& dir, bool verify) : dir_(dir), verify_(verify) {
  const std::string path = dir_ + "/" + kManifest;
  const std::string text = ReadFile(path);
  try {
    ParseManifest(text);
  } catch (const nlohmann::json::exception& error) {
    Fail(ErrorCode::kData, "{} is not the manifest of a saved model: {}", path, error.what());
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
  for (const ModelFile& file : files_) {
    const std::string name = dir_ + "/" + file.name;
    const size_t bytes = MappedFile(name).size();
    if (bytes != file.bytes)
      Fail(ErrorCode::kData, "{} has {} bytes, the manifest says {}: the model is damaged", name,
           bytes, file.bytes);
  }
  open_.resize(files_.size());
}

ModelReader::~ModelReader() = default;
ModelReader::ModelReader(ModelReader&&) noexcept = default;

void ModelReader::ParseManifest(const std::string& text) {
  const Json manifest = Json::parse(text);
  if (manifest.at("format") != kFormat)
    Fail(ErrorCode::kData, "its format is {}, not \"{}\"", manifest.at("format").dump(), kFormat);
  if (manifest.at("version") != kVersion)
    Fail(ErrorCode::kData, "its version is {}, this program reads {}: use a newer one",
         manifest.at("version").dump(), kVersion);
  manifest.at("step").get_to(step_);
  manifest.at("config").get_to(config_);
  manifest.at("model_sha256").get_to(model_sha256_);
  if (Sha256Hex(config_) != manifest.at("config_sha256").get<std::string>())
    Fail(ErrorCode::kData, "its configuration does not have the SHA-256 {}: it is damaged",
         manifest.at("config_sha256").dump());
  for (const Json& file : manifest.at("files")) files_.push_back(FromJsonValue(file));
  for (size_t f = 0; f < files_.size(); ++f)
    for (size_t t = 0; t < files_[f].tensors.size(); ++t) index_[files_[f].tensors[t].key] = {f, t};
  const std::string sum = ModelSha256(files_, step_);
  if (sum != model_sha256_)
    Fail(ErrorCode::kData,
         "its tensors' checksums give model_sha256 {}, it says {}: the manifest is damaged", sum,
         model_sha256_);
}

std::vector<std::string> ModelReader::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, place] : index_) keys.push_back(key);
  return keys;
}

const ModelReader::Place& ModelReader::Find(const std::string& key) const {
  const auto found = index_.find(key);
  if (found != index_.end()) return found->second;
  const std::string nearest = NearestName(key, keys());
  Fail(ErrorCode::kData, "{} has no tensor '{}'{}", dir_, key,
       nearest.empty() ? "" : fmt::format("; the nearest is '{}'", nearest));
}

const ModelFile::Tensor& ModelReader::Info(const std::string& key) const {
  const Place& place = Find(key);
  return files_[place.file].tensors[place.tensor];
}

const SafetensorsReader& ModelReader::Open(size_t file) {
  if (open_[file] != nullptr) return *open_[file];
  const ModelFile& expected = files_[file];
  auto reader = std::make_unique<SafetensorsReader>(dir_ + "/" + expected.name);
  if (verify_) {
    Sha256 hash;
    hash.Update(reader->bytes().data(), reader->bytes().size());
    const std::string sum = hash.HexDigest();
    if (sum != expected.sha256)
      Fail(ErrorCode::kData, "{} is damaged: its SHA-256 is {}, the manifest says {}",
           reader->path(), sum, expected.sha256);
  }
  for (const ModelFile::Tensor& tensor : expected.tensors) {
    const SafetensorsReader::Tensor* found = reader->Find(tensor.key);
    if (found == nullptr || found->info.shape != tensor.shape)
      Fail(ErrorCode::kData, "{} does not hold tensor '{}' {} that the manifest lists",
           reader->path(), tensor.key, ShapeText(tensor.shape));
  }
  open_[file] = std::move(reader);
  return *open_[file];
}

NamedTensor ModelReader::Tensor(const std::string& key) {
  const SafetensorsReader::Tensor* tensor = Open(Find(key).file).Find(key);
  return {key, tensor->info.shape, tensor->values};
}

std::span<const float> ModelReader::Tensor(const std::string& key,
                                           const std::vector<int64_t>& shape) {
  const ModelFile::Tensor& info = Info(key);
  if (info.shape != shape)
    Fail(ErrorCode::kData,
         "tensor '{}' of {} has shape {}, expected {}: was it trained with another configuration?",
         key, dir_, ShapeText(info.shape), ShapeText(shape));
  return Tensor(key).values;
}

void ModelReader::VerifyAll() {
  for (size_t file = 0; file < files_.size(); ++file) Open(file);
}

}  // namespace renzan
