#pragma once

// The files of a shard that is being written, one for each array. Used by DatasetWriter.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/data/dataset/manifest.h"
#include "renzan/data/dataset/npy.h"

namespace renzan {

// A temporary file in a shard's folder, of the numbers of DatasetWriterOptions::dense_at_end.
inline constexpr char kUnscaledFile[] = "/.unscaled.npy";

inline NpyType IdTypeOf(const CategoricalFeature& feature) {
  return feature.has_wide_ids() ? NpyType::kInt64 : NpyType::kInt32;
}

// Positions in DatasetSchema::categorical, by how ids are stored.
struct StoredColumns {
  std::vector<size_t> one_hot, narrow, wide;  // all one-hot; those in ids.npy; the others
  std::vector<size_t> multi_hot;

  explicit StoredColumns(const DatasetSchema& schema) {
    for (size_t f = 0; f < schema.categorical.size(); ++f) {
      const CategoricalFeature& feature = schema.categorical[f];
      (feature.multi_hot ? multi_hot : one_hot).push_back(f);
      if (!feature.multi_hot) (feature.has_wide_ids() ? wide : narrow).push_back(f);
    }
  }
};

// The open files of the current shard.
struct ShardWriters {
  std::optional<NpyWriter> label;  // none if the rows have no labels
  std::optional<NpyWriter> further_labels;
  NpyWriter dense, ids;
  std::optional<NpyWriter> weight;
  std::optional<NpyWriter> unscaled;  // temporary
  std::deque<NpyWriter> wide_ids;     // a deque, because NpyWriters do not move
  struct Jagged {
    NpyWriter values, offsets;
    std::optional<NpyWriter> weights;  // of the values

    Jagged(const std::string& folder, const CategoricalFeature& feature)
        : values(fmt::format("{}/{}", folder, FeatureFile(feature.name, "values")),
                 IdTypeOf(feature)),
          offsets(fmt::format("{}/{}", folder, FeatureFile(feature.name, "offsets")),
                  NpyType::kInt64) {
      offsets.AppendValue(int64_t{0});
      if (!feature.weights.empty())
        weights.emplace(fmt::format("{}/{}", folder, FeatureFile(feature.name, "weights")),
                        NpyType::kFloat32);
    }
  };
  std::deque<Jagged> jagged;
  struct Key {
    NpyWriter text, at;

    Key(const std::string& folder, const std::string& name)
        : text(fmt::format("{}/{}", folder, FeatureFile(name, "key")), NpyType::kUint8),
          at(fmt::format("{}/{}", folder, FeatureFile(name, "key_at")), NpyType::kInt64) {
      at.AppendValue(int64_t{0});
    }
  };
  std::deque<Key> keys;

  ShardWriters(const std::string& folder, const DatasetSchema& schema, const StoredColumns& columns,
               const DatasetWriterOptions& options)
      : dense(folder + "/dense.npy", NpyType::kFloat32,
              {static_cast<int64_t>(schema.dense.size())}),
        ids(folder + "/ids.npy", NpyType::kInt32, {std::ssize(columns.narrow)}) {
    if (schema.has_labels()) label.emplace(folder + "/label.npy", NpyType::kFloat32);
    if (!schema.further_labels.empty())
      further_labels.emplace(fmt::format("{}/{}", folder, kFurtherLabelsFile), NpyType::kFloat32,
                             std::vector<int64_t>{std::ssize(schema.further_labels)});
    if (!schema.weight.empty())
      weight.emplace(fmt::format("{}/{}", folder, kWeightFile), NpyType::kFloat32);
    // Doubles, as the bits of int64.
    if (!options.dense_at_end.empty())
      unscaled.emplace(folder + kUnscaledFile, NpyType::kInt64,
                       std::vector<int64_t>{std::ssize(options.dense_at_end)});
    for (const size_t f : columns.wide)
      wide_ids.emplace_back(
          fmt::format("{}/{}", folder, FeatureFile(schema.categorical[f].name, "ids")),
          NpyType::kInt64);
    for (const size_t f : columns.multi_hot) jagged.emplace_back(folder, schema.categorical[f]);
    for (const std::string& name : options.keys) keys.emplace_back(folder, name);
  }

  int64_t rows() const { return dense.rows(); }
};

}  // namespace renzan
