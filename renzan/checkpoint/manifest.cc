#include "renzan/checkpoint/manifest.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/base/sha256.h"
#include "renzan/checkpoint/strict_json.h"
#include "renzan/checkpoint/text_or_null.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "renzan-checkpoint";
// Readers of version 1 know no sparse files, those of version 2 only uniform initial rows.
constexpr int kVersion = 1, kSparseVersion = 2, kDistributionVersion = 3;
constexpr const char* kInt8 = "int8";
// The nesting is manifest, files, file, initial_rows, tensors, tensor, shape; with some margin.
constexpr size_t kMaxDepth = 9;
// A million tensors need less; a larger file is not a manifest.
constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;

Json ToJsonValue(const std::vector<CheckpointFile::Tensor>& tensors) {
  Json list = Json::array();
  for (const CheckpointFile::Tensor& tensor : tensors)
    list.push_back({{"key", tensor.info.key},
                    {"dtype", Name(tensor.info.dtype)},
                    {"shape", tensor.info.shape},
                    {"sha256", TextOrNull(tensor.sha256)}});
  return list;
}

Json ToJsonValue(const CheckpointFile& file) {
  Json json = {{"name", file.name}, {"bytes", file.bytes}, {"xxh128", file.xxh128}};
  // Hexadecimal, because a number of JSON may lose digits.
  if (file.sparse)
    json["initial_rows"] = {{"philox_key", fmt::format("{:016x}", file.sparse->initial.key)},
                            {"bound", fmt::format("{:a}", file.sparse->initial.bound)},
                            {"state", fmt::format("{:a}", file.sparse->initial.state)},
                            {"tensors", ToJsonValue(file.sparse->tensors)}};
  if (file.sparse && file.sparse->initial.distribution != Distribution::kUniform)
    json["initial_rows"]["distribution"] = Name(file.sparse->initial.distribution);
  json["tensors"] = ToJsonValue(file.tensors);
  return json;
}

std::string Text(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_string()) Fail(ErrorCode::kData, "its '{}' is {}, not a string", key, value.dump());
  return value.get<std::string>();
}

// 0 to 2^62, so that sums of two cannot overflow.
int64_t Whole(const Json& value, const char* what) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{1} << 62)
    Fail(ErrorCode::kData, "its '{}' is {}, not a whole number from 0 to 2^62", what, value.dump());
  return static_cast<int64_t>(value.get<uint64_t>());
}

std::string Digest(const Json& object, const char* key, size_t digits) {
  std::string text = Text(object, key);
  if (text.size() != digits || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    Fail(ErrorCode::kData, "its '{}' is '{}', not {} hexadecimal digits", key, text, digits);
  return text;
}

std::string DigestOrNull(const Json& object, const char* key, size_t digits) {
  return object.at(key).is_null() ? "" : Digest(object, key, digits);
}

// Rejects names that lead out of the directory of the checkpoint.
std::string PlainName(const Json& object) {
  std::string name = Text(object, "name");
  if (name.empty() || name.size() > 255 || name[0] == '.' || name == kCheckpointManifestName ||
      name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
    Fail(ErrorCode::kData, "this is not a valid name of a checkpoint or its files: '{}'", name);
  return name;
}

std::vector<CheckpointFile::Tensor> TensorsFromJson(const Json& list) {
  std::vector<CheckpointFile::Tensor> tensors;
  for (const Json& item : list) {
    CheckpointFile::Tensor& tensor = tensors.emplace_back();
    tensor.info.key = Text(item, "key");
    tensor.info.dtype = ParseDType(Text(item, "dtype"));
    for (const Json& dimension : item.at("shape"))
      tensor.info.shape.push_back(Whole(dimension, "shape"));
    CheckShape(tensor.info);
    tensor.sha256 = DigestOrNull(item, "sha256", 64);
  }
  return tensors;
}

// A float as fmt's "{:a}" writes it.
float HexFloat(const Json& object, const char* key) {
  const std::string text = Text(object, key);
  char* end = nullptr;
  const float value = std::strtof(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value))
    Fail(ErrorCode::kData, "its '{}' is '{}', not a number", key, text);
  return value;
}

CheckpointFile::Sparse SparseFromJson(const Json& value) {
  return {.initial = {.key = std::strtoull(Digest(value, "philox_key", 16).c_str(), nullptr, 16),
                      .bound = HexFloat(value, "bound"),
                      .state = HexFloat(value, "state"),
                      .distribution = value.contains("distribution")
                                          ? ParseDistribution(Text(value, "distribution"))
                                          : Distribution::kUniform},
          .tensors = TensorsFromJson(value.at("tensors"))};
}

CheckpointFile FromJsonValue(const Json& value) {
  CheckpointFile file;
  file.name = PlainName(value);
  file.bytes = static_cast<uint64_t>(Whole(value.at("bytes"), "bytes"));
  file.xxh128 = Digest(value, "xxh128", 32);
  if (value.contains("initial_rows")) file.sparse = SparseFromJson(value.at("initial_rows"));
  file.tensors = TensorsFromJson(value.at("tensors"));
  uint64_t bytes = 0;
  for (const CheckpointFile::Tensor& tensor : file.tensors) {
    bytes += NumBytes(tensor.info);
    if (bytes > file.bytes)
      Fail(ErrorCode::kData, "the tensors of {} need more than its {} bytes", file.name,
           file.bytes);
  }
  return file;
}

void CheckNamesAndKeys(const std::vector<CheckpointFile>& files) {
  std::set<std::string> names, keys;
  for (const CheckpointFile& file : files) {
    if (!names.insert(file.name).second)
      Fail(ErrorCode::kData, "file {} is listed twice", file.name);
    for (const CheckpointFile::Tensor& tensor : file.tensors)
      if (!keys.insert(tensor.info.key).second)
        Fail(ErrorCode::kData, "tensor '{}' is listed twice", tensor.info.key);
  }
}

bool HasSparseFiles(const std::vector<CheckpointFile>& files) {
  return std::ranges::any_of(files, [](const CheckpointFile& f) { return f.sparse.has_value(); });
}

// The lowest version whose readers understand these files.
int VersionOf(const std::vector<CheckpointFile>& files) {
  if (!HasSparseFiles(files)) return kVersion;
  const bool only_uniform = std::ranges::all_of(files, [](const CheckpointFile& f) {
    return !f.sparse || f.sparse->initial.distribution == Distribution::kUniform;
  });
  return only_uniform ? kSparseVersion : kDistributionVersion;
}

// The fields that only an incremental checkpoint has.
void ParseIncrement(const Json& json, CheckpointManifest& manifest) {
  const Json& base = json.at("base");
  const bool incremental = manifest.kind == CheckpointKind::kIncremental;
  if (base.is_null() == incremental)
    Fail(ErrorCode::kData, "it is {} and {} a base", Name(manifest.kind),
         incremental ? "lacks" : "names");
  if (incremental) manifest.base = {PlainName(base), Digest(base, "manifest_sha256", 64)};
  const Json& quantization = json.at("quantization");
  if (quantization.is_null()) return;
  if (!incremental || quantization != kInt8)
    Fail(ErrorCode::kData, "its quantization is {}; only incremental ones may have \"{}\"",
         quantization.dump(), kInt8);
  manifest.quantization = kInt8;
}

void CheckChecksums(const Json& json, const CheckpointManifest& manifest) {
  if (Sha256Hex(manifest.config) != Digest(json, "config_sha256", 64))
    Fail(ErrorCode::kData, "its configuration does not have the SHA-256 {}: it is corrupt",
         json.at("config_sha256").dump());
  if (manifest.model_sha256.empty()) return;
  const std::string sum = manifest.kind == CheckpointKind::kFull
                              ? ModelSha256(manifest.files, manifest.step)
                              : std::string("null");
  if (sum != manifest.model_sha256)
    Fail(ErrorCode::kData, "its tensors' checksums give model_sha256 {}, but it records {}", sum,
         manifest.model_sha256);
}

CheckpointManifest FromJsonValue(Json json, std::string sha256) {
  CheckpointManifest manifest;
  manifest.manifest_sha256 = std::move(sha256);
  const std::string kind = Text(json, "kind");
  if (kind == Name(CheckpointKind::kIncremental)) {
    manifest.kind = CheckpointKind::kIncremental;
  } else if (kind != Name(CheckpointKind::kFull)) {
    Fail(ErrorCode::kData, "its kind is '{}', neither full nor incremental", kind);
  }
  manifest.step = Whole(json.at("step"), "step");
  manifest.unix_ms = Whole(json.at("unix_ms"), "unix_ms");
  ParseIncrement(json, manifest);
  manifest.model_sha256 = DigestOrNull(json, "model_sha256", 64);
  for (const auto& [name, value] : json.at("run").items())
    manifest.run[name] = Text(json.at("run"), name.c_str());
  for (const Json& file : json.at("files")) manifest.files.push_back(FromJsonValue(file));
  if (manifest.kind != CheckpointKind::kFull && HasSparseFiles(manifest.files))
    Fail(ErrorCode::kData, "it is {} and has initial rows", kind);
  CheckNamesAndKeys(manifest.files);
  manifest.config = Text(json, "config");
  CheckChecksums(json, manifest);
  return manifest;
}

// One line per entry, file and tensor: compact, but easy to read and to diff.
std::string Print(const Json& manifest) {
  std::string text = "{";
  for (const auto& [key, value] : manifest.items()) {
    text += fmt::format("{}\n  {}: ", text.size() > 1 ? "," : "", Json(key).dump());
    if (key != "files") {
      text += value.dump();
      continue;
    }
    text += "[";
    for (size_t f = 0; f < value.size(); ++f) {
      Json file = value[f];
      const Json tensors = std::exchange(file["tensors"], Json::array());
      std::string line = file.dump();
      line.resize(line.size() - 2);  // "]}", after which the tensors go
      text += fmt::format("{}\n    {}", f > 0 ? "," : "", line);
      for (size_t t = 0; t < tensors.size(); ++t)
        text += fmt::format("{}\n      {}", t > 0 ? "," : "", tensors[t].dump());
      text += "]}";
    }
    text += "]";
  }
  return text + "\n}\n";
}

// Converts the JSON library's exceptions for missing keys and wrong types.
template <typename Body>
auto WithJsonErrors(std::string_view what, const Body& body) {
  try {
    return body();
  } catch (const nlohmann::json::exception& error) {
    Fail(ErrorCode::kData, "{}: {}", what, error.what());
  }
}

}  // namespace

std::string_view Name(CheckpointKind kind) {
  return kind == CheckpointKind::kFull ? "full" : "incremental";
}

std::string CheckpointFile::ToJson() const { return ToJsonValue(*this).dump(); }

CheckpointFile CheckpointFile::FromJson(std::string_view text) {
  CheckStrictJson(text, kMaxDepth, "the description of a checkpoint file");
  return WithJsonErrors("not the description of a checkpoint file",
                        [&] { return FromJsonValue(Json::parse(text)); });
}

std::string CheckpointManifest::ToJson() const {
  return WithJsonErrors("a checkpoint's manifest cannot be written", [&] {
    Json list = Json::array();
    for (const CheckpointFile& file : files) list.push_back(ToJsonValue(file));
    Json json = {{"format", kFormat},
                 {"version", VersionOf(files)},
                 {"kind", Name(kind)},
                 {"step", step},
                 {"unix_ms", unix_ms},
                 {"base", nullptr},
                 {"quantization", TextOrNull(quantization)},
                 {"model_sha256", TextOrNull(model_sha256)},
                 {"run", run},
                 {"files", std::move(list)},
                 {"config_sha256", Sha256Hex(config)},
                 {"config", config}};
    if (base) json["base"] = {{"name", base->name}, {"manifest_sha256", base->manifest_sha256}};
    json["manifest_sha256"] = Sha256Hex(json.dump());
    return Print(json);
  });
}

CheckpointManifest CheckpointManifest::Parse(std::string_view text) {
  CheckStrictJson(text, kMaxDepth, "it");
  return WithJsonErrors("a key is missing or has the wrong type", [&] {
    Json json = Json::parse(text);
    // Check format and version first, because another version may differ in everything else.
    if (json.at("format") != kFormat)
      Fail(ErrorCode::kData, "its format is {}, not \"{}\"", json.at("format").dump(), kFormat);
    if (json.at("version") != kVersion && json.at("version") != kSparseVersion &&
        json.at("version") != kDistributionVersion)
      Fail(ErrorCode::kData,
           "its version is {}, but this program reads versions {} to {}: use a newer program",
           json.at("version").dump(), kVersion, kDistributionVersion);
    const std::string recorded = Digest(json, "manifest_sha256", 64);
    json.erase("manifest_sha256");
    const std::string sum = Sha256Hex(json.dump());
    if (sum != recorded)
      Fail(ErrorCode::kData, "its SHA-256 is {}, but it records {}: it is corrupt", sum, recorded);
    const int version = json.at("version").get<int>();
    CheckpointManifest manifest = FromJsonValue(std::move(json), sum);
    if (HasSparseFiles(manifest.files) != (version != kVersion))
      Fail(ErrorCode::kData, "its version is {}, but {} of its files has initial rows", version,
           version != kVersion ? "none" : "one");
    if (VersionOf(manifest.files) != version)
      Fail(ErrorCode::kData, "its version is {}, but its initial rows are of version {}", version,
           VersionOf(manifest.files));
    return manifest;
  });
}

CheckpointManifest CheckpointManifest::Read(const std::string& dir) {
  const std::string path = fmt::format("{}/{}", dir, kCheckpointManifestName);
  try {
    return Parse(Storage::Of(path).ReadText(path, kMaxManifestBytes));
  } catch (const Error& problem) {
    if (problem.code() != ErrorCode::kData) throw;
    throw problem.WithContext(fmt::format("{} is not a valid manifest of a checkpoint", path));
  }
}

uint64_t CheckpointManifest::bytes() const {
  uint64_t bytes = 0;
  for (const CheckpointFile& file : files) bytes += file.bytes;
  return bytes;
}

bool IsModelTensor(std::string_view key) {
  return !key.starts_with(kProgressPrefix) && !key.starts_with(kErrorFeedbackPrefix);
}

std::string ModelSha256(std::span<const CheckpointFile> files, int64_t step) {
  std::map<std::string, std::string> lines;
  bool all_hashed = true;
  for (const CheckpointFile& file : files) {
    for (const auto& [info, sha256] : file.whole_tensors()) {
      if (!IsModelTensor(info.key)) continue;
      all_hashed = all_hashed && !sha256.empty();
      const std::string line = fmt::format("{} {} {}\n", info.key, ShapeText(info.shape), sha256);
      if (!lines.emplace(info.key, line).second)
        Fail(ErrorCode::kData, "tensor '{}' is in two of the model's files", info.key);
    }
  }
  if (!all_hashed) return "";
  Sha256 hash;
  hash.Update(fmt::format("step {}\n", step));
  for (const auto& [key, line] : lines) hash.Update(line);
  return hash.HexDigest();
}

}  // namespace renzan
