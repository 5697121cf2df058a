#include "renzan/data/manifest.h"

#include <limits>
#include <set>
#include <utility>

#include "renzan/base/config.h"
#include "renzan/base/error.h"
#include "renzan/base/file.h"

namespace renzan {
namespace {

constexpr int64_t kFormatVersion = 1;
constexpr int64_t kMaxRows = int64_t{1} << 48;
constexpr int64_t kMaxEmbeddings = std::numeric_limits<int32_t>::max();

std::string ManifestPath(const std::string& directory) { return directory + "/dataset.yaml"; }

}  // namespace

NpyType FileEntry::type() const {
  const std::optional<NpyType> type = NpyTypeFromName(dtype);
  CHECK(type.has_value());
  return *type;
}

void FileEntry::Describe(ConfigFields& fields) {
  fields.Choice("dtype", &dtype, {"float32", "int32", "int64", "uint8"});
  fields.Field("shape", &shape);
  fields.Field("sha256", &sha256);
  fields.Require(!dtype.empty(), "dtype", "is missing");
}

void ShardEntry::Describe(ConfigFields& fields) {
  fields.Range("rows", &rows, 0, kMaxRows);
  fields.Map("files", &files);
}

void FeatureEntry::Describe(ConfigFields& fields) {
  fields.Range("num_embeddings", &num_embeddings, 1, kMaxEmbeddings);
  fields.Field("multi_hot", &multi_hot);
  fields.Field("vocabulary", &vocabulary);
}

void DatasetManifest::Describe(ConfigFields& fields) {
  int64_t version = kFormatVersion;
  fields.Field("format_version", &version);
  fields.Require(version == kFormatVersion, "format_version",
                 fmt::format("is {}, but this program reads version {}: use a newer one", version,
                             kFormatVersion));
  fields.Range("rows", &rows, 0, kMaxRows);
  fields.Field("created_by", &created_by);
  fields.Field("label", &label);
  fields.Field("dense", &dense);
  fields.Field("categorical", &categorical);
  fields.Map("features", &features);
  fields.Map<PlantedModel>("generated", &generated, [](ConfigFields& inner, PlantedModel& planted) {
    inner.Range("best_auc", &planted.best_auc, 0, 1);
    inner.Range("best_log_loss", &planted.best_log_loss, 0, 100);
  });
  fields.Map("vocabulary", &vocabulary);
  fields.Map("shards", &shards);

  for (const std::string& name : categorical)
    fields.Require(features.contains(name), "features", fmt::format("has no entry for '{}'", name));
  fields.Require(features.size() == categorical.size(), "features",
                 "must have one entry for each feature of 'categorical'");
  int64_t sum = 0;
  for (const auto& [name, shard] : shards) sum += shard.rows;
  fields.Require(sum == rows, "rows", fmt::format("is {}, but the shards have {}", rows, sum));
}

DatasetSchema DatasetManifest::schema() const {
  DatasetSchema schema;
  schema.label = label;
  schema.dense = dense;
  for (const std::string& name : categorical) {
    const FeatureEntry& feature = features.at(name);
    schema.categorical.push_back({name, feature.num_embeddings, feature.multi_hot});
  }
  return schema;
}

DatasetManifest ReadManifest(const std::string& directory) {
  const std::string path = ManifestPath(directory);
  if (!FileExists(path))
    Fail(ErrorCode::kNoInput,
         "{} is not a dataset: {} does not exist; `renzan data import` or "
         "`renzan data synth` make one",
         directory, path);
  DatasetManifest manifest;
  try {
    ReadConfigFile(path, {}, [&](ConfigFields& fields) { manifest.Describe(fields); });
    CheckSchema(manifest.schema());
  } catch (const Error& error) {
    // Wrong here means damaged data, not a slip in somebody's configuration.
    if (error.code() != ErrorCode::kConfig) throw;
    Fail(ErrorCode::kData, "{}", error.what());
  }
  return manifest;
}

void WriteManifest(const std::string& directory, DatasetManifest manifest) {
  WriteFileAtomically(ManifestPath(directory),
                      PrintConfig([&](ConfigFields& fields) { manifest.Describe(fields); }));
}

void CheckSchema(const DatasetSchema& schema) {
  std::set<std::string> seen;
  const auto check_name = [&](const std::string& name) {
    if (name.empty()) Fail(ErrorCode::kConfig, "a column of the dataset has an empty name");
    if (!seen.insert(name).second)
      Fail(ErrorCode::kConfig, "column '{}' appears twice in the dataset", name);
  };
  check_name(schema.label);
  for (const std::string& name : schema.dense) check_name(name);
  for (const CategoricalFeature& feature : schema.categorical) {
    check_name(feature.name);
    if (feature.num_embeddings < 1 || feature.num_embeddings > kMaxEmbeddings)
      Fail(ErrorCode::kConfig, "feature '{}' has {} embeddings; between 1 and {} are possible",
           feature.name, feature.num_embeddings, kMaxEmbeddings);
  }
}

std::string ShardName(size_t index) { return fmt::format("shard-{:05}", index); }

std::string FeatureFile(const std::string& feature, std::string_view part) {
  return fmt::format("{}.{}.npy", EscapeName(feature), part);
}

}  // namespace renzan
