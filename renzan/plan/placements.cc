#include "renzan/plan/placements.h"

#include <algorithm>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// Splits the row blocks of all columns evenly among these workers. If there are fewer blocks than
// workers, the first workers get them.
void OverRanks(size_t table, const TableSpec& spec, std::span<const int> ranks,
               std::vector<Shard>* shards) {
  const int parts = std::min(static_cast<int>(ranks.size()), spec.row_blocks);
  for (int column = 0; column < spec.column_blocks; ++column)
    for (int part = 0; part < parts; ++part)
      for (const IndexRange range : AlignedRanges(
               spec, {part * spec.row_blocks / parts, (part + 1) * spec.row_blocks / parts}))
        shards->push_back({table, range, column, ranks[static_cast<size_t>(part)]});
}

}  // namespace

std::vector<Shard> PlaceTable(size_t table, const TableSpec& spec, Sharding sharding,
                              const Topology& topology, std::span<const int> order) {
  std::vector<Shard> shards;
  switch (sharding) {
    case Sharding::kRowWise:
      OverRanks(table, spec, order, &shards);
      return shards;
    case Sharding::kTableRowWise: {
      const auto host =
          std::find_if(topology.hosts.begin(), topology.hosts.end(),
                       [&](const IndexRange& candidate) { return candidate.contains(order[0]); });
      std::vector<int> ranks;
      for (const int rank : order)
        if (host->contains(rank)) ranks.push_back(rank);
      OverRanks(table, spec, ranks, &shards);
      return shards;
    }
    case Sharding::kColumnWise:
    case Sharding::kTableWise:
    case Sharding::kReplicated:
      for (int column = 0; column < spec.column_blocks; ++column) {
        int rank = order[0];
        if (sharding == Sharding::kColumnWise)
          rank = order[static_cast<size_t>(column) % order.size()];
        if (sharding == Sharding::kReplicated) rank = kEveryRank;
        for (const IndexRange range : AlignedRanges(spec, {0, spec.row_blocks}))
          shards.push_back({table, range, column, rank});
      }
      return shards;
    case Sharding::kAuto:
      break;
  }
  CHECK_MSG(false, "no sharding");
}

std::vector<Sharding> AllowedShardings(const TableSpec& spec, const Topology& topology) {
  std::vector<Sharding> allowed = {Sharding::kTableWise};
  if (topology.workers() == 1) return allowed;
  if (spec.row_blocks > 1) allowed.push_back(Sharding::kRowWise);
  if (spec.column_blocks > 1) allowed.push_back(Sharding::kColumnWise);
  if (spec.row_blocks > 1 && topology.hosts.size() > 1 &&
      std::ssize(topology.hosts) < topology.workers())
    allowed.push_back(Sharding::kTableRowWise);
  constexpr int64_t kMostReplicatedValues = int64_t{1} << 22;
  if (spec.num_embeddings * spec.embedding_dim <= kMostReplicatedValues)
    allowed.push_back(Sharding::kReplicated);
  return allowed;
}

}  // namespace renzan
