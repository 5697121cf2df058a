#include "renzan/data/dataset/manifest.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "renzan/base/config/config.h"
#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"
#include "renzan/base/sha256.h"
#include "renzan/base/xxhash.h"
#include "renzan/data/dense_transform.h"
#include "renzan/storage/storage.h"

namespace renzan {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 48;

// The beginning of the last line of dataset.yaml.
constexpr std::string_view kChecksumKey = "xxh128: ";

std::string ManifestPath(const std::string& directory) {
  return fmt::format("{}/{}", directory, kDatasetManifestName);
}

// The last line, without the line break at its end.
std::string_view LastLine(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

std::string ChecksumOf(std::string_view text) {
  Xxh128 hash;
  hash.Update(text);
  return hash.HexDigest();
}

// Removes the checksum line from the end of dataset.yaml's text and returns whether there was one;
// throws kData if it does not match the text before it.
bool TakeChecksum(const std::string& path, std::string* text) {
  const std::string last(LastLine(*text));
  if (!last.starts_with(kChecksumKey) || !text->ends_with('\n')) return false;
  const std::string recorded = last.substr(kChecksumKey.size());
  text->resize(static_cast<size_t>(LastLine(*text).data() - text->data()));
  const std::string found = ChecksumOf(*text);
  if (found != recorded)
    Fail(ErrorCode::kData,
         "{} is corrupt: its XXH128 is {}, but its last line says {}: restore it or import the "
         "data again",
         path, found, Escape(recorded));
  return true;
}

std::string VersionProblem(int64_t version) {
  return fmt::format("is {}, but this program reads versions 1 to {}: use a newer program", version,
                     kNewestDatasetFormatVersion);
}

// A later version has keys that this program does not know, and which say less than the version.
void CheckVersion(const std::string& path, std::string_view text) {
  constexpr std::string_view kKey = "format_version: ";
  int64_t version = 0;
  if (!text.starts_with(kKey)) return;
  text.remove_prefix(kKey.size());
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), version);
  if (parsed.ec == std::errc() && version > kNewestDatasetFormatVersion)
    Fail(ErrorCode::kData, "{}:1: format_version {}", path, VersionProblem(version));
}

}  // namespace

NpyType FileEntry::type() const {
  const std::optional<NpyType> type = NpyTypeFromName(dtype);
  CHECK(type.has_value());
  return *type;
}

uint64_t FileEntry::bytes() const {
  int64_t bytes = NpyTypeBytes(type());
  for (const int64_t size : shape) bytes *= size;
  return static_cast<uint64_t>(kNpyHeaderBytes + bytes);
}

void FileEntry::Describe(ConfigFields& fields) {
  fields.Choice("dtype", &dtype, {"float32", "int32", "int64", "uint8", "uint64"});
  fields.Field("shape", &shape);
  fields.Field("sha256", &sha256);
  fields.Require(!dtype.empty(), "dtype", "is missing");
}

void ShardEntry::Describe(ConfigFields& fields) {
  fields.Range("rows", &rows, 0, kMaxRows);
  fields.Map("files", &files);
}

void LabelEntry::Describe(ConfigFields& fields) {
  fields.Field("rule", &rule);
  fields.Field("optional", &optional);
  fields.Range("labelled_rows", &labelled_rows, 0, kMaxRows);
  fields.Range("positive_rows", &positive_rows, 0, labelled_rows);
}

void FeatureEntry::Describe(ConfigFields& fields, bool with_unset) {
  fields.Range("num_embeddings", &num_embeddings, 1, kMaxEmbeddings);
  fields.Field("multi_hot", &multi_hot);
  fields.Field("vocabulary", &vocabulary);
  fields.Range("unseen", &unseen, 0, 1);
  if (with_unset || !table.empty()) fields.Field("table", &table);
  if (with_unset || max_length > 0) fields.Range("max_length", &max_length, 0, kMaxSequenceLength);
  fields.Require(max_length == 0 || multi_hot, "max_length", "needs multi_hot: true");
  if (!with_unset && weights.name.empty()) return;
  fields.Section("weights", [this](ConfigFields& inner) {
    constexpr double kMax = std::numeric_limits<float>::max();
    inner.Field("name", &weights.name);
    inner.Range("min", &weights.min, -kMax, kMax);
    inner.Range("mean", &weights.mean, -kMax, kMax);
    inner.Range("max", &weights.max, -kMax, kMax);
  });
  fields.Require(weights.name.empty() || multi_hot, "weights", "needs multi_hot: true");
}

void VectorEntry::Describe(ConfigFields& fields) {
  fields.Range("dimension", &dimension, 1, kMaxVectorDimension);
}

void DatasetManifest::Describe(ConfigFields& fields, bool with_unset) {
  fields.Field("format_version", &format_version);
  fields.Require(format_version >= 1 && format_version <= kNewestDatasetFormatVersion,
                 "format_version", VersionProblem(format_version));
  fields.Range("rows", &rows, 0, kMaxRows);
  fields.Field("created_by", &created_by);
  fields.Field("label", &label);
  fields.Require(!label.empty() || format_version >= kUnlabelledFormatVersion, "label",
                 "is empty, which this version does not allow");
  fields.Field("label_rule", &label_rule);
  fields.Range("positive_rows", &positive_rows, -1, kMaxRows);
  if (with_unset || label_optional) {
    fields.Field("label_optional", &label_optional);
    fields.Range("labelled_rows", &labelled_rows, 0, kMaxRows);
  }
  if (with_unset || !further_labels.empty()) {
    fields.Field("further_labels", &further_labels);
    fields.Map("further_label_entries", &further_label_entries);
  }
  if (with_unset || !number_labels.empty()) {
    fields.Map<NumberSummary>(
        "number_labels", &number_labels, [](ConfigFields& inner, NumberSummary& numbers) {
          inner.Range("min", &numbers.min, -kMaxNumberLabel, kMaxNumberLabel);
          inner.Range("mean", &numbers.mean, -kMaxNumberLabel, kMaxNumberLabel);
          inner.Range("max", &numbers.max, -kMaxNumberLabel, kMaxNumberLabel);
        });
  }
  fields.Field("parsing", &parsing);
  if (with_unset || !weight.name.empty())
    fields.Section("weight", [this](ConfigFields& inner) {
      constexpr double kMax = std::numeric_limits<float>::max();
      inner.Field("name", &weight.name);
      inner.Range("min", &weight.min, 0, kMax);
      inner.Range("mean", &weight.mean, 0, kMax);
      inner.Range("max", &weight.max, 0, kMax);
      inner.Require(!weight.name.empty() || weight.max == 0, "name", "is missing");
    });
  if (with_unset || negatives_kept != 1) {
    fields.Range("negatives_kept", &negatives_kept, 0, 1);
    fields.Require(negatives_kept > 0, "negatives_kept", "must be greater than 0");
  }
  fields.Field("dense", &dense);
  fields.Field("dense_transforms", &dense_transforms);
  fields.Require(dense_transforms.size() == (format_version == 1 ? 0 : dense.size()),
                 "dense_transforms", "must have one entry for each feature of 'dense'");
  for (const std::string& transform : dense_transforms)
    fields.Require(DenseTransform::Parse(transform).has_value(), "dense_transforms",
                   fmt::format("has '{}', which is not a transform", transform));
  if (with_unset || !vectors.empty()) fields.Map("vectors", &vectors);
  fields.Require(vectors.empty() || format_version >= kLabelsAndVectorsFormatVersion, "vectors",
                 "are in this version, which does not have them");
  for (const auto& [name, vector] : vectors)
    fields.Require(FirstOfVector(name, vector).has_value(), "vectors",
                   fmt::format("has '{}' of dimension {}, whose features are not in 'dense' one "
                               "after the other",
                               name, vector.dimension));
  fields.Field("categorical", &categorical);
  fields.Map<FeatureEntry>("features", &features, [&](ConfigFields& inner, FeatureEntry& entry) {
    entry.Describe(inner, with_unset);
  });
  fields.Map<BayesOptimal>("generated", &generated,
                           [](ConfigFields& inner, BayesOptimal& bayes_optimal) {
                             inner.Range("best_auc", &bayes_optimal.best_auc, 0, 1);
                             inner.Range("best_log_loss", &bayes_optimal.best_log_loss, 0, 100);
                           });
  fields.Map("vocabulary", &vocabulary);
  if (with_unset || vocabularies_reused) fields.Field("vocabularies_reused", &vocabularies_reused);
  fields.Map("shards", &shards);
  if (with_unset || !keys.empty()) {
    fields.Field("keys", &keys);
    fields.Map("key_files", &key_files);
  }
  if (with_unset || skipped_rows > 0) fields.Range("skipped_rows", &skipped_rows, 0, kMaxRows);
  if (with_unset || !input_rows.dtype.empty())
    fields.Section("input_rows", [this](ConfigFields& inner) {
      inner.Choice("dtype", &input_rows.dtype, {"", "int64"});
      inner.Field("shape", &input_rows.shape);
      inner.Field("sha256", &input_rows.sha256);
    });

  for (const std::string& name : categorical)
    fields.Require(features.contains(name), "features", fmt::format("has no entry for '{}'", name));
  fields.Require(features.size() == categorical.size(), "features",
                 "must have one entry for each feature of 'categorical'");
  fields.Require(further_labels.empty() ||
                     (format_version >= kLabelsAndVectorsFormatVersion && !label.empty()),
                 "further_labels",
                 "are there, which this version or data without a first label cannot have");
  for (const std::string& name : further_labels)
    fields.Require(further_label_entries.contains(name), "further_label_entries",
                   fmt::format("has no entry for '{}'", name));
  fields.Require(
      !label_optional || (format_version >= kOptionalLabelFormatVersion && !further_labels.empty()),
      "label_optional", "is true, which this version or data with one label cannot have");
  CheckNumberLabels(fields);
  for (const auto& [name, feature] : features)
    fields.Require((feature.table.empty() && feature.max_length == 0) ||
                       format_version >= kSequencesFormatVersion,
                   "features", "has a table or max_length, which this version does not have");
  for (const auto& [name, feature] : features)
    fields.Require(feature.weights.name.empty() || format_version >= kBagWeightsFormatVersion,
                   "features", "has weights, which this version does not have");
  int64_t sum = 0;
  for (const auto& [name, shard] : shards) sum += shard.rows;
  fields.Require(sum == rows, "rows", fmt::format("is {}, but the shards have {}", rows, sum));
  const int64_t labelled = label_optional ? labelled_rows : rows;
  fields.Require(labelled <= rows, "labelled_rows",
                 fmt::format("exceeds the {}", Counted(rows, "row")));
  fields.Require(positive_rows <= labelled, "positive_rows",
                 fmt::format("exceeds the {}", Counted(labelled, "row")));
}

// As many as there are labels with this rule, and no others.
void DatasetManifest::CheckNumberLabels(ConfigFields& fields) const {
  size_t expected = 0;
  const auto check = [&](const std::string& name, const std::string& rule) {
    if (rule != kNumberRule) return;
    ++expected;
    fields.Require(number_labels.contains(name), "number_labels",
                   fmt::format("has no entry for '{}'", name));
  };
  if (!label.empty()) check(label, label_rule);
  for (const auto& [name, entry] : further_label_entries) check(name, entry.rule);
  fields.Require(
      number_labels.size() == expected, "number_labels",
      fmt::format("has {}, but {} a number", Counted(number_labels.size(), "entry", "entries"),
                  expected == 1 ? "1 label is" : fmt::format("{} labels are", expected)));
  fields.Require(number_labels.empty() || format_version >= kNumberLabelsFormatVersion,
                 "number_labels", "are there, which this version does not have");
}

std::optional<size_t> DatasetManifest::FirstOfVector(const std::string& name,
                                                     const VectorEntry& vector) const {
  const DenseVector wanted{.name = name, .dimension = vector.dimension};
  const auto first = std::find(dense.begin(), dense.end(), wanted.NameOf(0));
  if (dense.end() - first < vector.dimension) return std::nullopt;
  for (int64_t i = 0; i < vector.dimension; ++i)
    if (first[i] != wanted.NameOf(i)) return std::nullopt;
  return static_cast<size_t>(first - dense.begin());
}

std::vector<DenseVector> DatasetManifest::DenseVectors() const {
  std::vector<DenseVector> found;
  for (const auto& [name, vector] : vectors)
    if (const std::optional<size_t> first = FirstOfVector(name, vector))
      found.push_back({.name = name, .first = *first, .dimension = vector.dimension});
  std::sort(found.begin(), found.end(),
            [](const DenseVector& a, const DenseVector& b) { return a.first < b.first; });
  return found;
}

bool DatasetManifest::HasOneValue(const std::string& label_name) const {
  if (const auto numbers = number_labels.find(label_name); numbers != number_labels.end())
    return numbers->second.min == numbers->second.max;
  const auto further = further_label_entries.find(label_name);
  const bool is_first = further == further_label_entries.end();
  const int64_t positive = is_first ? positive_rows : further->second.positive_rows;
  const int64_t labelled = !is_first        ? further->second.labelled_rows
                           : label_optional ? labelled_rows
                                            : rows;
  return positive == 0 || positive == labelled;
}

DatasetSchema DatasetManifest::schema() const {
  DatasetSchema schema;
  schema.label = label;
  schema.label_rule = label_rule;
  schema.label_optional = label_optional;
  for (const std::string& name : further_labels) {
    const LabelEntry& entry = further_label_entries.at(name);
    schema.further_labels.push_back({.name = name, .rule = entry.rule, .optional = entry.optional});
  }
  schema.parsing = parsing;
  schema.weight = weight.name;
  schema.negatives_kept = negatives_kept;
  schema.dense = dense;
  schema.vectors = DenseVectors();
  schema.dense_transforms = dense_transforms;
  for (const std::string& name : categorical) {
    const FeatureEntry& feature = features.at(name);
    schema.categorical.push_back({.name = name,
                                  .num_embeddings = feature.num_embeddings,
                                  .multi_hot = feature.multi_hot,
                                  .vocabulary = VocabularyIdentity(name),
                                  .table = feature.table,
                                  .max_length = feature.max_length,
                                  .weights = feature.weights.name,
                                  .min_weight = feature.weights.min});
  }
  return schema;
}

const std::string& DatasetManifest::VocabularyOwner(const std::string& feature) const {
  const std::string& table = features.at(feature).table_name(feature);
  for (const std::string& other : categorical)
    if (features.at(other).table_name(other) == table) return other;
  return feature;
}

std::string DatasetManifest::VocabularyIdentity(const std::string& feature) const {
  const std::string& spec = features.at(feature).vocabulary;
  const std::string& owner = VocabularyOwner(feature);
  const auto values = vocabulary.find(FeatureFile(owner, "values"));
  const auto offsets = vocabulary.find(FeatureFile(owner, "offsets"));
  if (values == vocabulary.end() || offsets == vocabulary.end()) return spec.empty() ? "ids" : spec;
  return VocabularyIdentityOf(spec, values->second.sha256, offsets->second.sha256);
}

std::string VocabularyIdentityOf(const std::string& spec, const std::string& values_sha256,
                                 const std::string& offsets_sha256) {
  constexpr size_t kDigits = 16;
  return fmt::format("{}:{}", spec, Sha256Hex(values_sha256 + offsets_sha256).substr(0, kDigits));
}

namespace {

// There must be two files for each key and shard, and no others.
void CheckKeyFiles(const DatasetManifest& manifest, const std::string& path) {
  if ((!manifest.keys.empty() || !manifest.input_rows.dtype.empty()) &&
      manifest.format_version < kKeysFormatVersion)
    Fail(ErrorCode::kData, "{}: format_version is {}, which has neither keys nor input_rows", path,
         manifest.format_version);
  size_t expected = 0;
  for (const auto& [folder, shard] : manifest.shards)
    for (const std::string& key : manifest.keys)
      for (const bool at : {false, true}) {
        const std::string file =
            fmt::format("{}/{}", folder, FeatureFile(key, at ? "key_at" : "key"));
        const auto found = manifest.key_files.find(file);
        ++expected;
        if (found == manifest.key_files.end())
          Fail(ErrorCode::kData, "{}: key_files has no entry for {}", path, file);
        const FileEntry& entry = found->second;
        if (entry.type() != (at ? NpyType::kInt64 : NpyType::kUint8) || entry.shape.size() != 1 ||
            (at && entry.shape[0] != shard.rows + 1))
          Fail(ErrorCode::kData, "{}: key_files: {} is {} {}", path, file, entry.dtype,
               FormatShape(entry.shape));
      }
  if (manifest.key_files.size() != expected)
    Fail(ErrorCode::kData, "{}: key_files has {} instead of {} (for {} and {})", path,
         Counted(manifest.key_files.size(), "entry", "entries"), expected,
         Counted(manifest.shards.size(), "shard"), Counted(manifest.keys.size(), "key"));
}

}  // namespace

DatasetManifest ReadManifest(const std::string& directory) {
  const std::string path = ManifestPath(directory);
  DatasetManifest manifest;
  try {
    std::string text = Storage::Of(path).ReadText(path);
    const bool guarded = TakeChecksum(path, &text);
    CheckVersion(path, text);
    ReadConfigText(text, path, {}, [&](ConfigFields& fields) { manifest.Describe(fields, true); });
    // A corrupt version number must not disable the checks.
    if (guarded != (manifest.format_version > 1))
      Fail(ErrorCode::kData, "{} is corrupt: {}", path,
           guarded ? "it has format version 1, but a checksum in its last line"
                   : "the checksum in its last line is missing");
    const DatasetSchema schema = manifest.schema();
    CheckSchema(schema);
    CheckKeys(manifest.keys, schema);
    CheckKeyFiles(manifest, path);
  } catch (const Error& error) {
    if (error.is_missing_file())
      Fail(ErrorCode::kNoInput,
           "{} is not a dataset: {} does not exist{}; create one with `renzan data import` or "
           "`renzan data synth`",
           directory, path,
           !directory.starts_with('/') && !IsInStore(directory) ? " below the current directory"
                                                                : "");
    // An error here means corrupt data, not a wrong configuration.
    if (error.code() != ErrorCode::kConfig) throw;
    Fail(ErrorCode::kData, "{}", error.what());
  }
  return manifest;
}

std::string ManifestText(DatasetManifest manifest) {
  std::string text = PrintConfig([&](ConfigFields& fields) { manifest.Describe(fields, false); });
  if (!text.ends_with('\n')) text += '\n';
  return fmt::format("{}{}{}\n", text, kChecksumKey, ChecksumOf(text));
}

std::string NameInDataset(const DatasetManifest& manifest, std::string_view name) {
  const std::string prefix = manifest.shards.empty()
                                 ? ""
                                 : manifest.shards.begin()->first.substr(
                                       0, manifest.shards.begin()->first.rfind("shard-"));
  return fmt::format("{}{}", prefix, name);
}

std::string VocabularyFolder(const DatasetManifest& manifest) {
  return NameInDataset(manifest, "vocabulary");
}

std::string ShardName(size_t index) { return fmt::format("shard-{:05}", index); }

std::string FeatureFile(const std::string& feature, std::string_view part) {
  // The file system's limit, minus the longest ending. Names that fit are never cut, because older
  // datasets have them uncut.
  constexpr size_t kMaxNameBytes = 255 - std::string_view(".offsets.npy").size();
  return fmt::format("{}.{}.npy", BoundedFileName(EscapeName(feature), kMaxNameBytes), part);
}

}  // namespace renzan
