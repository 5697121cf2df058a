#pragma once

// Writes a dataset row by row, in constant memory. Finish() makes the directory appear atomically.
// For a store, files are made on this machine's disk ($TMPDIR), and each shard is uploaded while
// the next is made; if ids or dense features change at the end, all shards wait on the disk until
// then. Not thread-safe.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "renzan/data/dataset/dataset.h"
#include "renzan/data/text/input.h"

namespace renzan {

struct DatasetManifest;

struct DatasetWriterOptions {
  int64_t shard_rows = 4'000'000;
  std::string created_by;
  // Ids are provisional until Finish() maps them; num_embeddings of the schema only says whether
  // they are wide, and wide ones are not mapped.
  bool map_ids_at_end = false;
  // Positions of the dense features whose values Finish() computes from other numbers.
  std::vector<size_t> dense_at_end;
  std::vector<std::string> keys;  // DatasetManifest::keys
  StopFunction stop;              // polled while ids are mapped
};

class DatasetWriter {
 public:
  // Throws kCantCreate if `directory` exists and is not empty, kConfig for an invalid schema.
  DatasetWriter(const std::string& directory, const DatasetSchema& schema,
                DatasetWriterOptions options = {});
  ~DatasetWriter();
  DatasetWriter(const DatasetWriter&) = delete;
  DatasetWriter& operator=(const DatasetWriter&) = delete;

  // `one_hot` holds the ids of the one-hot features in their order, `multi_hot` one bag for each
  // multi-hot feature in theirs. Throws kData for an id outside its table (unless ids are mapped at
  // the end), a label that is not 0 or 1, or a dense value that is not finite.
  // `bag_weights`: as `multi_hot`, one for each id of features with weights, none for the others;
  // kData unless they are finite. May be empty if no feature has weights.
  // `further_labels`: of the schema's further labels; NaN where an optional one is missing.
  // Without labels in the schema `label` is 0 and means nothing.
  // `unscaled` has the numbers of the features of dense_at_end, in its order; NaN: missing.
  // `weight`: if and only if the schema has weights; kData unless it is finite and not negative.
  // `keys`: the text of each key.
  void Append(float label, std::span<const float> dense, std::span<const int64_t> one_hot,
              std::span<const std::vector<int64_t>> multi_hot = {},
              std::span<const double> unscaled = {}, std::optional<float> weight = {},
              std::span<const std::string_view> keys = {},
              std::span<const float> further_labels = {},
              std::span<const std::vector<float>> bag_weights = {});
  int64_t rows() const;

  // The folder for the vocabulary's files; and the content of dataset.yaml, in which the importer
  // fills in vocabulary, num_embeddings and generated.
  std::string vocabulary_folder() const;
  DatasetManifest& manifest();

  // The path of another file beside dataset.yaml: where to write it before Finish(), and where it
  // is afterwards.
  std::string PathOfFile(const std::string& name);
  std::string FinalPathOfFile(const std::string& name) const;

  // Completes the files and puts the directory in place. With map_ids_at_end, id i of categorical
  // feature f becomes (*id_maps)[f][i] (an empty map changes nothing), and the manifest's
  // num_embeddings must be set by then. With dense_at_end, `scale` gives the value of a number
  // (NaN: missing) of the i-th of these features; `see_dense` is then called with each row.
  using Scale = std::function<float(size_t i, double number)>;
  using SeeDense = std::function<void(std::span<const float> dense)>;
  void Finish(const std::vector<std::vector<int32_t>>* id_maps = nullptr,
              const Scale& scale = nullptr, const SeeDense& see_dense = nullptr);
  // The same in two steps: all that can take long, and the last one.
  void Complete(const std::vector<std::vector<int32_t>>* id_maps = nullptr,
                const Scale& scale = nullptr, const SeeDense& see_dense = nullptr);
  void Commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace renzan
