#include "renzan/plan/placement.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "renzan/base/error.h"

namespace renzan {
namespace {

double Traffic(const TableSpec& table) {
  return table.pooling_factor * static_cast<double>(table.embedding_dim);
}

int64_t Elements(const TableSpec& table) { return table.num_embeddings * table.embedding_dim; }

}  // namespace

std::vector<int> PlaceTableWise(std::span<const TableSpec> tables, int world_size) {
  CHECK(world_size >= 1);
  std::vector<size_t> order(tables.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_tuple(-Traffic(tables[a]), -Elements(tables[a])) <
           std::make_tuple(-Traffic(tables[b]), -Elements(tables[b]));
  });
  struct Load {
    double traffic = 0;
    int64_t elements = 0;
  };
  std::vector<Load> loads(static_cast<size_t>(world_size));
  std::vector<int> owner(tables.size());
  for (size_t table : order) {
    const auto least =
        std::min_element(loads.begin(), loads.end(), [](const Load& a, const Load& b) {
          return std::tie(a.traffic, a.elements) < std::tie(b.traffic, b.elements);
        });
    least->traffic += Traffic(tables[table]);
    least->elements += Elements(tables[table]);
    owner[table] = static_cast<int>(least - loads.begin());
  }
  return owner;
}

}  // namespace renzan
