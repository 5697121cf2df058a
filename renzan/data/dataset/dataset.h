#pragma once

// A dataset: a directory of NumPy .npy shards and a dataset.yaml (docs/formats/dataset.md), on disk
// or in a store. What is read from a store is cached on disk. Opened read-only and memory-mapped.
// Thread-safe once opened.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "renzan/data/batch.h"

namespace renzan {

inline constexpr int64_t kMaxEmbeddings = int64_t{1} << 48;
inline constexpr int64_t kMaxSequenceLength = 4096;
inline constexpr int64_t kMaxVectorDimension = 65'536;

struct CategoricalFeature {
  std::string name;
  int64_t num_embeddings = 0;  // ids are in [0, num_embeddings)
  bool multi_hot = false;
  // How values were mapped to ids: "hash:1000", "threshold:8:<digest of the values>", or "ids" if
  // the input had ids. Features with the same text map the same values to the same ids.
  std::string vocabulary = "ids";
  // The embedding table whose rows its ids are; features may share one. Empty: its own.
  std::string table = {};
  // Greater than 0: a sequence, whose ids keep their order, and of which there are at most so many.
  int64_t max_length = 0;
  // The column that the weights of its ids come from; "": they have none. And the least weight.
  std::string weights = {};
  double min_weight = 0;

  const std::string& table_name() const { return table.empty() ? name : table; }

  // Whether ids take 64 bits on disk instead of 32.
  bool has_wide_ids() const { return num_embeddings > std::numeric_limits<int32_t>::max(); }
};

// The `label_rule` of a label that is a number, such as a rating, instead of 0 or 1.
inline constexpr char kNumberRule[] = "values number";
// Of such a label's absolute values: so large that a sum of squared errors is still exact.
inline constexpr float kMaxNumberLabel = 1e9f;
inline bool IsNumberLabel(float value) {
  return value >= -kMaxNumberLabel && value <= kMaxNumberLabel;
}

// A label of the rows, such as a click, or a purchase beside it.
struct DatasetLabel {
  std::string name;
  std::string rule = {};  // DatasetSchema::label_rule
  bool optional = false;  // whether rows may lack it, if they have another
  bool is_number() const { return rule == kNumberRule; }
  bool operator==(const DatasetLabel&) const = default;
};

// Dense features that one column of the input gives, in its order: embedding.0, embedding.1 and so
// on.
struct DenseVector {
  std::string name;  // of the column
  size_t first = 0;  // in DatasetSchema::dense
  int64_t dimension = 0;

  // Of its i-th feature.
  std::string NameOf(int64_t i) const;
};

// DatasetSchema::parsing of a column whose fields are taken unchanged.
inline constexpr char kPlainParsing[] = "plain";

struct DatasetSchema {
  std::string label;  // empty: the rows have no labels, and only predictions can be made for them
  std::vector<std::string> dense;
  std::vector<CategoricalFeature> categorical;
  // The transform of each of `dense`, as DenseTransform::text(): "log", "standardize:3.5:1.2".
  // Empty if unknown (format version 1).
  std::vector<std::string> dense_transforms;
  // How the input's labels were mapped to 0 and 1: "positive >50K", "at_least 4", or kNumberRule.
  // Empty if they were 0 and 1, or if the version that imported them did not record it.
  std::string label_rule;
  // How the text of each column, including the label, was read before it was mapped: "plain", or
  // "trim, missing '?', separator ';'". Empty if unknown: the input was not text, or the version
  // that imported it did not record it.
  std::map<std::string, std::string> parsing;
  std::string weight;  // the name of the column of sample weights, or ""
  // The share of the population's negatives that the data hold, in (0, 1]: below 1 after negative
  // downsampling.
  double negatives_kept = 1;
  std::vector<DenseVector> vectors = {};  // which of `dense` belong together, in their order
  std::vector<DatasetLabel> further_labels = {};  // none without `label`
  bool label_optional = false;                    // DatasetLabel::optional of the first

  bool has_labels() const { return !label.empty(); }
  size_t num_labels() const { return has_labels() ? 1 + further_labels.size() : 0; }
  DatasetLabel first_label() const { return {label, label_rule, label_optional}; }
  // All, in the order of Batch::label: only where they are stored sets the first one apart.
  std::vector<DatasetLabel> labels() const;
  std::vector<std::string> label_names() const;  // of labels()
  bool first_label_is_number() const { return has_labels() && label_rule == kNumberRule; }
  // The names of those that are numbers.
  std::vector<std::string> number_labels() const;
};

// The first feature that looks up the same table.
size_t FirstOfTable(const DatasetSchema& schema, size_t feature);

// The first column whose DatasetSchema::parsing both record, but differently; "" if there is none.
std::string DifferentlyParsed(const std::map<std::string, std::string>& a,
                              const std::map<std::string, std::string>& b);

// The best scores that any model can reach on generated data.
struct BayesOptimal {
  double best_auc = 0;       // of the teacher's own probabilities on these rows
  double best_log_loss = 0;  // natural logarithm, mean per row
};

// The weights of a dataset's samples, or of a feature's values.
struct WeightSummary {
  std::string name;  // of the column; "": there are none
  double min = 0, mean = 0, max = 0;
};

// The values of a label that is a number, in the rows that have it; 0 without such rows.
struct NumberSummary {
  double min = 0, mean = 0, max = 0;
};

struct DatasetManifest;
class DatasetCache;

struct DataCacheOptions {
  std::string directory;   // empty: $RENZAN_DATA_CACHE, else a directory in the user's cache
  uint64_t max_bytes = 0;  // of the whole cache; 0: four fifths of the free space
};

struct DatasetOptions {
  // Compare each block of a shard with its checksum when it is first read.
  bool verify_blocks = true;
  // Log a warning for an old format.
  bool warn = true;
  DataCacheOptions cache;  // for a dataset in a store
};

class Dataset {
 public:
  // Reads dataset.yaml and maps every shard. Checks that each file has the size, dtype and shape
  // that dataset.yaml declares (kData).
  explicit Dataset(const std::string& directory, DatasetOptions options = {});
  ~Dataset();
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;

  const std::string& directory() const;
  const DatasetSchema& schema() const;
  int64_t num_rows() const;
  const std::optional<BayesOptimal>& bayes_optimal() const;

  // SHA-256 over the recorded file checksums, the schema and the preprocessing: datasets with the
  // same fingerprint hold the same samples with the same meaning.
  const std::string& fingerprint() const;

  // The content of dataset.yaml.
  const DatasetManifest& manifest() const;

  // Recomputes every file's SHA-256; throws kData naming the first file that differs.
  void Verify() const;

  // Gathers the given rows (any order, repeats allowed) into `batch`, reusing its memory. Throws
  // kData, naming the file, for a corrupt block; kData, naming row, feature and value, for an id
  // outside its table, a label other than 0 or 1, a non-finite dense value, or a weight that is not
  // between the smallest and the largest one recorded; kIo if reading fails. Never alters values
  // silently.
  void Read(std::span<const int64_t> rows, Batch* batch) const;

  // Null unless the dataset is in a store.
  DatasetCache* cache() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace renzan
