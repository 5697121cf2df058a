#include "renzan/train/splits.h"

#include <algorithm>
#include <numeric>

#include "renzan/base/error.h"
#include "renzan/train/gather.h"

namespace renzan {
namespace {

void CheckSameOnAllWorkers(const Dataset& dataset, Communicator& comm) {
  const std::vector<std::string> fingerprints = GatherStrings(comm, dataset.fingerprint());
  for (size_t rank = 0; rank < fingerprints.size(); ++rank)
    if (fingerprints[rank] != fingerprints[0])
      Fail(ErrorCode::kData,
           "{} holds other data on worker {} than on worker 0 (fingerprints {} and {}): give every "
           "worker the same dataset",
           dataset.directory(), rank, fingerprints[rank].substr(0, 12),
           fingerprints[0].substr(0, 12));
}

std::unique_ptr<Dataset> Open(const std::string& path, bool verify, Communicator& comm) {
  auto dataset = std::make_unique<Dataset>(path);
  CheckSameOnAllWorkers(*dataset, comm);
  // Every host may have its own copy: each worker reads what it will train on.
  if (verify) dataset->Verify();
  return dataset;
}

}  // namespace

RowRange ResolveRows(const std::vector<int64_t>& rows, const Dataset& dataset, const char* key) {
  if (rows.empty()) return {0, dataset.num_rows()};
  if (rows[1] > dataset.num_rows())
    Fail(ErrorCode::kConfig, "{}: rows end at {}, but {} has only {} rows", key, rows[1],
         dataset.directory(), dataset.num_rows());
  return {rows[0], rows[1]};
}

void CheckSameSchema(const DatasetSchema& expected, const Dataset& dataset) {
  const DatasetSchema& actual = dataset.schema();
  if (actual.dense != expected.dense)
    Fail(ErrorCode::kConfig, "{}: its {} dense features are not the {} of the training data",
         dataset.directory(), actual.dense.size(), expected.dense.size());
  if (actual.categorical.size() != expected.categorical.size())
    Fail(ErrorCode::kConfig, "{}: it has {} categorical features, the training data has {}",
         dataset.directory(), actual.categorical.size(), expected.categorical.size());
  for (size_t i = 0; i < expected.categorical.size(); ++i) {
    const CategoricalFeature &a = actual.categorical[i], &e = expected.categorical[i];
    if (a.name != e.name || a.num_embeddings != e.num_embeddings || a.multi_hot != e.multi_hot)
      Fail(ErrorCode::kConfig,
           "{}: categorical feature {} is {} with {} ids, in the training data {} with {}: import "
           "it with --vocabulary-from the training dataset",
           dataset.directory(), i, a.name, a.num_embeddings, e.name, e.num_embeddings);
  }
}

OpenedSplits OpenSplits(const DataConfig& config, Communicator& comm) {
  OpenedSplits splits;
  splits.train_dataset = Open(config.train.path, config.verify, comm);
  splits.train = {splits.train_dataset.get(),
                  ResolveRows(config.train.rows, *splits.train_dataset, "data.train.rows")};
  if (config.eval.path.empty()) return splits;
  const Dataset* eval = splits.train_dataset.get();
  if (config.eval.path != config.train.path) {
    splits.eval_dataset = Open(config.eval.path, config.verify, comm);
    CheckSameSchema(splits.train_dataset->schema(), *splits.eval_dataset);
    eval = splits.eval_dataset.get();
  }
  splits.eval = {eval, ResolveRows(config.eval.rows, *eval, "data.eval.rows")};
  return splits;
}

std::vector<double> EstimatePoolingFactors(const Split& split) {
  constexpr int64_t kSample = 1024;
  std::vector<int64_t> rows(
      static_cast<size_t>(std::min(kSample, split.rows.size())));
  std::iota(rows.begin(), rows.end(), split.rows.begin);
  Batch batch;
  split.dataset->Read(rows, &batch);
  std::vector<double> factors;
  for (const FeatureIds& feature : batch.categorical)
    factors.push_back(static_cast<double>(feature.values.size()) /
                      static_cast<double>(std::max<int64_t>(batch.size, 1)));
  return factors;
}

}  // namespace renzan
