#include "renzan/run/count_ids.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace renzan {

std::vector<IdCounts> CountIds(const RunSpec& spec, const Model& model, const Split& split,
                               ThreadPool& pool) {
  const FeatureLookups lookups = LookupsOf(spec.tables, spec.features, model);
  std::vector<IdCounts> counts;
  std::vector<size_t> features;
  for (const Model::Item& item : model.items()) {
    if (!item.popularity) continue;
    const auto ids = static_cast<size_t>(model.options().tables[item.table].num_ids);
    counts.push_back({.of_id = std::vector<int64_t>(ids), .rows = split.rows.size()});
    features.push_back(lookups.pooled.at(item.table));
  }
  if (counts.empty()) return counts;
  constexpr int64_t kPart = 8192;
  std::vector<Batch> batches(static_cast<size_t>(pool.num_threads()));
  const auto parts = static_cast<size_t>((split.rows.size() + kPart - 1) / kPart);
  pool.ParallelTasks(parts, [&](int thread, size_t part) {
    const int64_t first = split.rows.begin + static_cast<int64_t>(part) * kPart;
    std::vector<int64_t> rows(static_cast<size_t>(std::min(kPart, split.rows.end - first)));
    std::iota(rows.begin(), rows.end(), first);
    Batch& batch = batches[static_cast<size_t>(thread)];
    split.dataset->Read(rows, &batch);
    // Whole numbers: the order of threads does not matter.
    for (size_t k = 0; k < counts.size(); ++k)
      for (const int64_t id : batch.categorical[features[k]].values)
        std::atomic_ref(counts[k].of_id[static_cast<size_t>(id)])
            .fetch_add(1, std::memory_order_relaxed);
  });
  return counts;
}

}  // namespace renzan
