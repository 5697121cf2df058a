#include "renzan/plan/bag_places.h"

namespace renzan {

std::vector<BagPlace> SideBySide(std::span<const TableSpec> tables, int64_t first_column) {
  std::vector<BagPlace> places;
  for (const TableSpec& table : tables)
    for (int64_t bag = 0; bag < table.bags(); ++bag, first_column += table.embedding_dim)
      places.push_back({.matrix = 0, .column = first_column});
  return places;
}

}  // namespace renzan
