#include "renzan/run_spec/feature_lookups.h"

#include "renzan/base/error.h"

namespace renzan {
namespace {

// What a feature's rows are to the model: pooled in one bag, or a sequence.
struct LookedUp {
  int64_t positions = 0, dim = 0;
};

std::vector<LookedUp> ByFeature(std::span<const TableSpec> tables,
                                const std::vector<size_t>& features) {
  std::vector<LookedUp> of(features.size());
  size_t next = 0;
  for (const TableSpec& table : tables)
    for (const int64_t positions : table.features)
      of.at(features.at(next++)) = {positions, table.embedding_dim};
  CHECK(next == features.size());
  return of;
}

// Null for negatives that the batch does not have.
const FeatureIds* IdsOfFeature(const Batch& batch, size_t feature) {
  if (feature < batch.categorical.size()) return &batch.categorical[feature];
  feature -= batch.categorical.size();
  return feature < batch.negatives.size() ? &batch.negatives[feature] : nullptr;
}

}  // namespace

FeatureLookups LookupsOf(std::span<const TableSpec> tables, const std::vector<size_t>& features,
                         const Model& model) {
  FeatureLookups lookups{.features = features, .places = {}, .pooled = {}, .sequences = {}};
  const std::vector<LookedUp> of = ByFeature(tables, features);
  std::vector<BagPlace> first(of.size());  // by feature
  int64_t column = model.first_pooled();
  for (size_t f = 0; f < of.size(); ++f) {
    if (of[f].positions > 0) {
      lookups.sequences.push_back(f);
      first[f] = {.matrix = lookups.sequences.size(), .column = 0};
    } else {
      lookups.pooled.push_back(f);
      first[f] = {.matrix = 0, .column = column};
      column += of[f].dim;
    }
  }
  CHECK(lookups.sequences.size() == model.options().sequences.size());
  for (const size_t f : features)
    for (int64_t bag = 0; bag < std::max<int64_t>(of[f].positions, 1); ++bag)
      lookups.places.push_back(
          {.matrix = first[f].matrix, .column = first[f].column + bag * of[f].dim});
  return lookups;
}

const FeatureIds& FeatureLookups::IdsOf(const Batch& batch, size_t feature) {
  if (const FeatureIds* const own = IdsOfFeature(batch, feature)) return *own;
  empty.offsets.resize(static_cast<size_t>(batch.size) + 1);
  return empty;
}

void FeatureLookups::ReadLengths(const Batch& batch, int64_t first, int64_t n,
                                 Model::Workspace* workspace) const {
  for (size_t s = 0; s < sequences.size(); ++s) {
    const FeatureIds* const own = IdsOfFeature(batch, sequences[s]);
    const int32_t* const offsets =
        own != nullptr ? own->offsets.data() + static_cast<size_t>(first) : nullptr;
    for (int64_t i = 0; i < n; ++i)
      workspace->lengths[s][static_cast<size_t>(i)] =
          offsets != nullptr ? offsets[i + 1] - offsets[i] : 0;
  }
}

}  // namespace renzan
