#pragma once

// The content of dataset.yaml (docs/formats/dataset.md), with reading and writing. Plain data.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/dataset/npy.h"

namespace renzan {

class ConfigFields;

struct FileEntry {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string sha256;

  NpyType type() const;
  uint64_t bytes() const;  // of the whole file, with its header
  void Describe(ConfigFields& fields);
};

struct ShardEntry {
  int64_t rows = 0;
  std::map<std::string, FileEntry> files;  // by name inside the shard's folder

  void Describe(ConfigFields& fields);
};

// Of a label beside the first.
struct LabelEntry {
  std::string rule;
  bool optional = false;
  int64_t labelled_rows = 0, positive_rows = 0;  // how many rows have it, and have 1
  void Describe(ConfigFields& fields);
};

struct FeatureEntry {
  int64_t num_embeddings = 0;
  bool multi_hot = false;
  std::string vocabulary;  // "hash:1000" or "threshold:8"; empty if the input had ids
  // The share of lookups that read the row for unseen values instead of their own, in the data that
  // the vocabulary was made from (Vocabulary::TrainUnseen). Here, none do if `vocabularies_reused`.
  double unseen = 0;
  std::string table;       // CategoricalFeature::table
  int64_t max_length = 0;  // CategoricalFeature::max_length
  WeightSummary weights;   // of its values

  const std::string& table_name(const std::string& own) const {
    return table.empty() ? own : table;
  }
  // `with_unset`: as in DatasetManifest.
  void Describe(ConfigFields& fields, bool with_unset);
};

struct VectorEntry {
  int64_t dimension = 0;

  void Describe(ConfigFields& fields);
};

// The versions that are written: the later ones only for features with wide ids, for rows without
// labels, for keys and the numbers of the input's rows, for shared tables and sequences, for
// several labels and vectors, for labels that are numbers, for bags with weights, and where rows
// may lack the first label, so that older programs can read the others. Version 1 had no block
// checksums, no checksum of dataset.yaml, and no transforms.
inline constexpr int64_t kDatasetFormatVersion = 2, kWideIdsFormatVersion = 3,
                         kUnlabelledFormatVersion = 4, kKeysFormatVersion = 5,
                         kSequencesFormatVersion = 6, kLabelsAndVectorsFormatVersion = 7,
                         kNumberLabelsFormatVersion = 8, kBagWeightsFormatVersion = 9,
                         kOptionalLabelFormatVersion = 10,
                         kNewestDatasetFormatVersion = kOptionalLabelFormatVersion;

// The file in each shard's folder that holds the XXH3 of every block of the others.
inline constexpr char kBlockChecksumsFile[] = "checksums.npy";
// The one that holds the sample weights, if there are any.
inline constexpr char kWeightFile[] = "weight.npy";
// The one that holds the labels beside the first, if there are any: [rows, labels].
inline constexpr char kFurtherLabelsFile[] = "further_labels.npy";
// The file beside dataset.yaml that says which rows of the input were left out (input_rows.h).
inline constexpr char kInputRowsName[] = "input_rows.npy";

struct DatasetManifest {
  int64_t format_version = kDatasetFormatVersion;
  int64_t rows = 0;
  std::string created_by;       // for people: "import --format criteo"
  std::string label = "label";  // empty: none
  std::string label_rule;       // DatasetSchema::label_rule
  // How many rows have the label 1; -1 if not known (older imports), without labels, or if it is a
  // number.
  int64_t positive_rows = -1;
  bool label_optional = false;  // DatasetSchema::label_optional
  int64_t labelled_rows = 0;    // how many rows have the first label; recorded if it is optional
  // The other labels, in the order of Batch::label, and an entry for each.
  std::vector<std::string> further_labels;
  std::map<std::string, LabelEntry> further_label_entries;
  std::map<std::string, NumberSummary> number_labels;  // of the labels that are numbers
  std::map<std::string, std::string> parsing;          // DatasetSchema::parsing
  WeightSummary weight;
  double negatives_kept = 1;  // DatasetSchema::negatives_kept
  std::vector<std::string> dense;
  std::vector<std::string> dense_transforms;  // DenseTransform::text() of each; absent in version 1
  std::map<std::string, VectorEntry> vectors;     // DatasetSchema::vectors, by name
  std::vector<std::string> categorical;           // in the order of Batch::categorical
  std::map<std::string, FeatureEntry> features;   // one for each of `categorical`
  std::map<std::string, BayesOptimal> generated;  // "teacher", or empty
  std::map<std::string, ShardEntry> shards;       // by folder; their order is the order of rows
  std::map<std::string, FileEntry> vocabulary;    // files in the folder vocabulary/
  // Whether the vocabularies are those of other data, unchanged. Older imports do not say it.
  bool vocabularies_reused = false;
  // Columns whose texts are kept for predictions, which may be features, too; and their files, two
  // for each key and shard ("shard-00000/user.key.npy"). Nothing that is trained depends on them.
  std::vector<std::string> keys;
  std::map<std::string, FileEntry> key_files;
  // Rows that the import skipped as bad, and the file that says which rows it left out
  // (input_rows.h); no dtype: none, or not recorded.
  int64_t skipped_rows = 0;
  FileEntry input_rows;

  // `with_unset`: also the keys that are written only by datasets that have what they describe, so
  // that others keep their bytes and older programs can read them.
  void Describe(ConfigFields& fields, bool with_unset);
  void CheckNumberLabels(ConfigFields& fields) const;
  DatasetSchema schema() const;
  // In the order of `dense`, where their features must be.
  std::vector<DenseVector> DenseVectors() const;
  // The position in `dense` of a vector's first feature; nothing if they are not there in its
  // order.
  std::optional<size_t> FirstOfVector(const std::string& name, const VectorEntry& vector) const;
  // Whether a label is known to be the same in all rows that have it.
  bool HasOneValue(const std::string& label_name) const;
  // Whether lookups of a feature may read the row for unseen values instead of their own, because
  // this is training data.
  bool may_train_unseen(const std::string& feature) const {
    return !vocabularies_reused && features.at(feature).unseen > 0;
  }
  // The feature whose name the files of a feature's vocabulary have: the first that shares its
  // table.
  const std::string& VocabularyOwner(const std::string& feature) const;
  // CategoricalFeature::vocabulary of a feature.
  std::string VocabularyIdentity(const std::string& feature) const;
};

// The identity of a vocabulary with these files: "threshold:8:<digest>".
std::string VocabularyIdentityOf(const std::string& spec, const std::string& values_sha256,
                                 const std::string& offsets_sha256);

// Throws kNoInput if the directory is not a dataset, kData with file, line and column if
// dataset.yaml is corrupt or has a later version.
DatasetManifest ReadManifest(const std::string& directory);
// The text of dataset.yaml, with the checksum line.
std::string ManifestText(DatasetManifest manifest);

inline constexpr char kDatasetManifestName[] = "dataset.yaml";

// A file or folder beside dataset.yaml, with the same prefix as the shards' folders. In a store,
// where nothing can be renamed, the prefix keeps two imports of one dataset apart.
std::string NameInDataset(const DatasetManifest& manifest, std::string_view name);
// The folder of the vocabulary's files.
std::string VocabularyFolder(const DatasetManifest& manifest);

// Throws kConfig for an empty or duplicate name, or an invalid table size.
void CheckSchema(const DatasetSchema& schema);
// The same for the names of keys, which may be those of features, but not of a vector's numbers.
void CheckKeys(const std::vector<std::string>& keys, const DatasetSchema& schema);

// "shard-00012"
std::string ShardName(size_t index);
// The name of a file of one feature, whose part is "values", "offsets", "weights" or "ids", or of a
// key, whose part is "key" or "key_at": "genres.values.npy". Special characters are written as %XX,
// and long names are cut (BoundedFileName).
std::string FeatureFile(const std::string& feature, std::string_view part);

}  // namespace renzan
