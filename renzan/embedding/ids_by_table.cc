#include "renzan/embedding/ids_by_table.h"

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/escape.h"

namespace renzan {
namespace {

std::span<const int64_t> BagOf(const IdsView& feature, size_t sample) {
  if (feature.offsets.empty()) return feature.values.subspan(sample, 1);
  const auto first = static_cast<size_t>(feature.offsets[sample]);
  return feature.values.subspan(first, static_cast<size_t>(feature.offsets[sample + 1]) - first);
}

// Of the i-th id of a sample's bag.
float WeightOf(const IdsView& feature, size_t sample, size_t i) {
  if (feature.weights.empty()) return 1;
  return feature.weights[static_cast<size_t>(feature.offsets[sample]) + i];
}

// Divides the weights of each bag by their sum, in double precision, unless that is 0.
void DivideBySums(const TableSpec& table, std::span<const int32_t> offsets,
                  std::span<float> weights) {
  for (size_t bag = 0; bag + 1 < offsets.size(); ++bag) {
    const std::span<float> of_bag = weights.subspan(
        static_cast<size_t>(offsets[bag]), static_cast<size_t>(offsets[bag + 1] - offsets[bag]));
    double sum = 0;
    for (const float weight : of_bag) {
      if (weight < 0)
        Fail(ErrorCode::kData,
             "table {}: a bag has the weight {}, but pooling: mean divides by the sum of the "
             "weights: use pooling: sum, or import weights from 0 on",
             Escape(table.name), weight);
      sum += weight;
    }
    if (sum == 0) continue;
    for (float& weight : of_bag) weight = static_cast<float>(weight / sum);
  }
}

size_t SamplesOf(const IdsView& feature) {
  return feature.offsets.empty() ? feature.values.size() : feature.offsets.size() - 1;
}

}  // namespace

void IdsByTable::Assign(std::span<const TableSpec> tables, std::span<const IdsView> features) {
  views_.clear();
  copies_.resize(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSpec& table = tables[t];
    CHECK(features.size() >= table.features.size());
    const std::span<const IdsView> own = features.first(table.features.size());
    features = features.subspan(own.size());
    if (table.bags() == 1 && table.features[0] == 0) {
      views_.push_back(own[0]);
      copies_[t].weights.clear();
    } else {
      CopyBags(table, own, &copies_[t]);
      views_.push_back({copies_[t].values, copies_[t].offsets});
    }
    if (table.weighted) SetWeights(table, &copies_[t], &views_.back());
  }
  CHECK(features.empty());
}

// `copy->weights`: of the ids, if they were copied.
void IdsByTable::SetWeights(const TableSpec& table, Copy* copy, IdsView* view) {
  if (copy->weights.empty()) {
    if (table.pooling == Pooling::kSum && !view->weights.empty()) return;
    copy->weights.assign(view->weights.begin(), view->weights.end());
    if (view->weights.empty()) copy->weights.assign(view->values.size(), 1.0f);
  }
  CHECK(copy->weights.size() == view->values.size());
  if (table.pooling == Pooling::kMean) DivideBySums(table, view->offsets, copy->weights);
  view->weights = copy->weights;
}

void IdsByTable::CopyBags(const TableSpec& table, std::span<const IdsView> features, Copy* copy) {
  copy->values.clear();
  copy->offsets.clear();
  copy->weights.clear();
  const auto end_bag = [&] {
    if (table.multi_hot) copy->offsets.push_back(static_cast<int32_t>(copy->values.size()));
  };
  end_bag();
  for (size_t sample = 0; sample < SamplesOf(features[0]); ++sample) {
    for (size_t f = 0; f < features.size(); ++f) {
      const std::span<const int64_t> ids = BagOf(features[f], sample);
      const auto positions = static_cast<size_t>(table.features[f]);
      if (positions > 0 && ids.size() > positions)
        Fail(ErrorCode::kData, "table {}: a sequence of {}, but it has at most {}",
             Escape(table.name), Counted(ids.size(), "id"), Counted(positions, "position"));
      for (size_t i = 0; i < ids.size(); ++i) {
        copy->values.push_back(ids[i]);
        if (table.weighted) copy->weights.push_back(WeightOf(features[f], sample, i));
        if (positions > 0) end_bag();
      }
      if (positions == 0) end_bag();
      for (size_t empty = ids.size(); empty < positions; ++empty) end_bag();
    }
  }
}

}  // namespace renzan
