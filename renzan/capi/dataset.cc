#include "renzan/data/dataset/dataset.h"

#include <nlohmann/json.hpp>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/capi/guard.h"
#include "renzan/data/dataset/manifest.h"

using namespace renzan;
using namespace renzan::capi;

namespace {

using Json = nlohmann::ordered_json;

// One object per categorical feature, with the files that hold its ids.
Json FeaturesOf(const DatasetSchema& schema) {
  Json features = Json::array();
  int64_t column = 0;
  for (const CategoricalFeature& feature : schema.categorical) {
    Json json = {{"name", feature.name},           {"num_embeddings", feature.num_embeddings},
                 {"multi_hot", feature.multi_hot}, {"vocabulary", feature.vocabulary},
                 {"table", feature.table_name()},  {"max_length", feature.max_length}};
    if (feature.multi_hot) {
      json["values"] = FeatureFile(feature.name, "values");
      json["offsets"] = FeatureFile(feature.name, "offsets");
      json["weights"] = nullptr;
      if (!feature.weights.empty())
        json["weights"] = {{"name", feature.weights},
                           {"file", FeatureFile(feature.name, "weights")}};
    } else if (feature.has_wide_ids()) {
      json["file"] = FeatureFile(feature.name, "ids");
      json["column"] = nullptr;
    } else {
      json["file"] = "ids.npy";
      json["column"] = column++;
    }
    features.push_back(json);
  }
  return features;
}

std::string Describe(const Dataset& dataset) {
  const DatasetSchema& schema = dataset.schema();
  Json shards = Json::array();
  for (const auto& [folder, shard] : dataset.manifest().shards)
    shards.push_back(
        {{"directory", fmt::format("{}/{}", dataset.directory(), folder)}, {"rows", shard.rows}});
  Json generated;
  if (const auto& best = dataset.bayes_optimal())
    generated = {{"best_auc", best->best_auc}, {"best_log_loss", best->best_log_loss}};
  Json vectors = Json::object();
  for (const DenseVector& vector : schema.vectors)
    vectors[vector.name] = {{"first", vector.first}, {"dimension", vector.dimension}};
  Json label, weight;
  if (schema.has_labels()) label = schema.label;
  Json labels = Json::array();
  for (const DatasetLabel& each : schema.labels())
    labels.push_back({{"name", each.name}, {"rule", each.rule}, {"optional", each.optional}});
  if (!schema.weight.empty()) weight = schema.weight;
  return Json{{"directory", dataset.directory()},
              {"rows", dataset.num_rows()},
              {"fingerprint", dataset.fingerprint()},
              {"label", label},
              {"label_rule", schema.label_rule},
              {"labels", labels},
              {"weight", weight},
              {"negatives_kept", schema.negatives_kept},
              {"dense", schema.dense},
              {"dense_transforms", schema.dense_transforms},
              {"vectors", vectors},
              {"categorical", FeaturesOf(schema)},
              {"generated", generated},
              {"shards", shards}}
      .dump();
}

}  // namespace

struct renzan_dataset {
  Dataset dataset;
  std::string description;

  explicit renzan_dataset(Dataset opened)
      : dataset(std::move(opened)), description(Describe(dataset)) {}
};

struct renzan_batch {
  Batch batch;
};

namespace {

const FeatureIds& IdsOf(const renzan_batch& batch, size_t feature) {
  const std::vector<FeatureIds>& features = batch.batch.categorical;
  if (feature >= features.size())
    Fail(ErrorCode::kUsage, "there is no categorical feature {}: there are {}", feature,
         features.size());
  return features[feature];
}

}  // namespace

renzan_status renzan_dataset_open(const char* directory, int verify_blocks,
                                  renzan_dataset** dataset) {
  return Guard([&] {
    NeedsArgument(directory, "directory");
    NeedsArgument(dataset, "dataset");
    *dataset = new renzan_dataset(Dataset(directory, {.verify_blocks = verify_blocks != 0}));
  });
}

void renzan_dataset_close(renzan_dataset* dataset) { delete dataset; }

const char* renzan_dataset_description(const renzan_dataset* dataset) {
  return dataset == nullptr ? "null" : dataset->description.c_str();
}

renzan_status renzan_dataset_verify(const renzan_dataset* dataset) {
  return Guard([&] {
    NeedsArgument(dataset, "dataset");
    dataset->dataset.Verify();
  });
}

renzan_status renzan_dataset_read(const renzan_dataset* dataset, const int64_t* rows,
                                  size_t num_rows, renzan_batch** batch) {
  return Guard([&] {
    NeedsArgument(dataset, "dataset");
    NeedsArgument(batch, "batch");
    if (num_rows > 0) NeedsArgument(rows, "rows");
    const std::span<const int64_t> wanted(rows, num_rows);
    for (const int64_t row : wanted)
      if (row < 0 || row >= dataset->dataset.num_rows())
        Fail(ErrorCode::kUsage, "{} has no row {}: it has {}", dataset->dataset.directory(), row,
             Counted(dataset->dataset.num_rows(), "row"));
    auto read = std::make_unique<renzan_batch>();
    dataset->dataset.Read(wanted, &read->batch);
    *batch = read.release();
  });
}

void renzan_batch_destroy(renzan_batch* batch) { delete batch; }

const float* renzan_batch_label(const renzan_batch* batch) {
  return batch == nullptr || batch->batch.label.empty() ? nullptr : batch->batch.label.data();
}

const float* renzan_batch_labels(const renzan_batch* batch) { return renzan_batch_label(batch); }

const float* renzan_batch_weight(const renzan_batch* batch) {
  return batch == nullptr || batch->batch.weight.empty() ? nullptr : batch->batch.weight.data();
}

const float* renzan_batch_dense(const renzan_batch* batch) {
  return batch == nullptr ? nullptr : batch->batch.dense.data();
}

renzan_status renzan_batch_ids(const renzan_batch* batch, size_t feature, const int64_t** values,
                               size_t* num_values, const int32_t** offsets) {
  return Guard([&] {
    NeedsArgument(batch, "batch");
    NeedsArgument(values, "values");
    NeedsArgument(num_values, "num_values");
    NeedsArgument(offsets, "offsets");
    const FeatureIds& ids = IdsOf(*batch, feature);
    *values = ids.values.data();
    *num_values = ids.values.size();
    *offsets = ids.one_hot() ? nullptr : ids.offsets.data();
  });
}

renzan_status renzan_batch_bag_weights(const renzan_batch* batch, size_t feature,
                                       const float** weights) {
  return Guard([&] {
    NeedsArgument(batch, "batch");
    NeedsArgument(weights, "weights");
    const std::vector<float>& of_values = IdsOf(*batch, feature).weights;
    *weights = of_values.empty() ? nullptr : of_values.data();
  });
}
