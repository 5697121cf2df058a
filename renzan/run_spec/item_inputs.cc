#include "renzan/run_spec/item_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "renzan/base/error.h"

namespace renzan {

ItemInputs::ItemInputs(const Model& model, const FeatureLookups& lookups,
                       std::vector<IdCounts> counts)
    : counts_(std::move(counts)) {
  size_t counted = 0;
  for (const Model::Item& item : model.items())
    items_.push_back({.feature = lookups.pooled.at(item.table),
                      .counts = item.popularity ? std::optional(counted++) : std::nullopt});
}

void ItemInputs::Read(const Batch& batch, int64_t first, int64_t n,
                      Model::Workspace* workspace) const {
  for (size_t k = 0; k < items_.size(); ++k) {
    const FeatureIds& feature = batch.categorical[items_[k].feature];
    CHECK(feature.one_hot());
    const auto ids =
        std::span(feature.values).subspan(static_cast<size_t>(first), static_cast<size_t>(n));
    SampleItems& items = workspace->items[k];
    // Samples with one id become neighbours, the first sample first.
    std::vector<int32_t>& order = items.order;
    order.resize(ids.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return std::pair(ids[static_cast<size_t>(a)], a) < std::pair(ids[static_cast<size_t>(b)], b);
    });
    const auto at = [&](size_t i) { return static_cast<size_t>(order[i]); };
    for (size_t i = 0; i < order.size(); ++i)
      items.first[at(i)] =
          i > 0 && ids[at(i)] == ids[at(i - 1)] ? items.first[at(i - 1)] : order[i];
    if (!items_[k].counts) continue;
    const IdCounts& counts = counts_.at(*items_[k].counts);
    for (size_t i = 0; i < ids.size(); ++i) {
      const int64_t count = counts.of_id.at(static_cast<size_t>(ids[i]));
      CHECK(count > 0);
      items.log_shares[i] = static_cast<float>(
          std::log(static_cast<double>(count) / static_cast<double>(counts.rows)));
    }
  }
}

}  // namespace renzan
