#include "renzan/cli/train/model_data.h"

#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/data/vocabulary.h"
#include "renzan/observe/run_manifest.h"
#include "renzan/run/splits.h"
#include "renzan/saving/model_directory.h"

namespace renzan {
namespace {

// Gives the categorical features the model's ids. Not null if the data has more.
std::unique_ptr<KnownIds> ReadAsTheModel(const FeaturesConfig& model, DatasetSchema* schema) {
  bool has_more = false;
  std::vector<KnownIds::Feature> known;
  for (size_t f = 0; f < schema->categorical.size(); ++f) {
    CategoricalFeature& feature = schema->categorical[f];
    has_more |= feature.num_embeddings > model.num_embeddings[f];
    feature.num_embeddings = model.num_embeddings[f];
    known.push_back({feature.num_embeddings, HasUnseenRow(feature.vocabulary)});
  }
  return has_more ? std::make_unique<KnownIds>(std::move(known)) : nullptr;
}

// The data of the run's own configuration are to be those that the run had.
void CheckUnchanged(const DataOfRun& of, const Dataset& dataset) {
  const std::string run = FindRun(of.model);
  if (run.empty()) return;
  const std::string recorded =
      RecordedFingerprint(ReadRunManifest(run + "/manifest.json"), dataset.directory());
  if (!recorded.empty() && recorded != dataset.fingerprint())
    Fail(ErrorCode::kData,
         "{} has changed since {} was trained (fingerprint {} then, {} now): restore it, or "
         "evaluate what is there now with {} {}",
         dataset.directory(), of.model, recorded.substr(0, 12), dataset.fingerprint().substr(0, 12),
         of.flag, dataset.directory());
}

}  // namespace

ModelData OpenModelData(const std::string& path, const TrainConfig& config,
                        const std::optional<DataOfRun>& run, Communicator& comm) {
  ModelData data;
  data.dataset = OpenDataset(path, {}, comm);
  if (run) CheckUnchanged(*run, *data.dataset);
  RunWithHeartbeats(comm, [&] {  // vocabularies may be in a store
    CheckFeatures({.features = config.features,
                   .recorded_by = "the model",
                   .ids = ExpectedIds::kContinued,
                   .vocabularies_from = config.data.train.path.empty() ? "the training data"
                                                                       : config.data.train.path},
                  *data.dataset, comm);
  });
  data.schema = data.dataset->schema();
  data.known_ids = ReadAsTheModel(config.features, &data.schema);
  return data;
}

std::string Describe(const SplitConfig& data) {
  if (data.rows.empty()) return data.path;
  return fmt::format("rows {} to {} of {}", data.rows[0], data.rows[1], data.path);
}

}  // namespace renzan
