#include "renzan/embedding/column_squares.h"

#include <algorithm>
#include <span>

namespace renzan {

ColumnSquares::ColumnSquares(Communicator& comm, const ShardMap& map)
    : comm_(comm),
      map_(map),
      squares_(map.held().size()),
      means_(map.held().size()),
      sent_(static_cast<size_t>(map.world_size())),
      received_(sent_.size()),
      send_(sent_.size()),
      recv_(sent_.size()) {
  for (int r = 0; r < map.world_size(); ++r) {
    if (r == map.rank()) continue;
    const auto same_rows = [&](size_t a, size_t b) {
      return map.shards()[a].table == map.shards()[b].table &&
             map.shards()[a].row_blocks == map.shards()[b].row_blocks;
    };
    const auto needs_any_of = [&](const std::vector<size_t>& holder, size_t shard) {
      return map.shards()[shard].rank != kEveryRank && map.table_of(shard).column_blocks > 1 &&
             std::any_of(holder.begin(), holder.end(),
                         [&](size_t other) { return same_rows(shard, other); });
    };
    for (const size_t shard : map.held())
      if (needs_any_of(map.held_by(r), shard)) sent_[static_cast<size_t>(r)].push_back(shard);
    for (const size_t shard : map.held_by(r))
      if (needs_any_of(map.held(), shard)) received_[static_cast<size_t>(r)].push_back(shard);
  }
}

int ColumnSquares::HeldWithRowsOf(size_t shard) const {
  const Shard& wanted = map_.shards()[shard];
  for (size_t held = 0; held < map_.held().size(); ++held) {
    const Shard& candidate = map_.shards()[map_.held()[held]];
    if (candidate.table == wanted.table && candidate.row_blocks == wanted.row_blocks)
      return static_cast<int>(held);
  }
  return -1;
}

void ColumnSquares::ExchangeThem() {
  // By shard; empty until its squares are on this worker.
  thread_local std::vector<std::span<const float>> of_shard;
  of_shard.assign(map_.shards().size(), {});
  for (size_t held = 0; held < squares_.size(); ++held)
    of_shard[map_.held()[held]] = squares_[held];
  for (size_t r = 0; r < sent_.size(); ++r) {
    send_[r].clear();
    for (const size_t shard : sent_[r])
      send_[r].insert(send_[r].end(), of_shard[shard].begin(), of_shard[shard].end());
    size_t size = 0;
    for (const size_t shard : received_[r])
      size += squares_[static_cast<size_t>(HeldWithRowsOf(shard))].size();
    recv_[r].resize(size);
  }
  // The plan decides which workers have squares to exchange, but every rank must join a collective.
  if (map_.world_size() > 1) {
    thread_local std::vector<std::span<const std::byte>> from;
    thread_local std::vector<std::span<std::byte>> to;
    from.clear();
    to.clear();
    for (const std::vector<float>& message : send_)
      from.push_back(std::as_bytes(std::span(message)));
    for (std::vector<float>& message : recv_)
      to.push_back(std::as_writable_bytes(std::span(message)));
    comm_.AllToAllV(from, to);
  }
  for (size_t r = 0; r < received_.size(); ++r) {
    size_t at = 0;
    for (const size_t shard : received_[r]) {
      const size_t size = squares_[static_cast<size_t>(HeldWithRowsOf(shard))].size();
      of_shard[shard] = std::span<const float>(recv_[r]).subspan(at, size);
      at += size;
    }
  }
  for (size_t held = 0; held < squares_.size(); ++held) {
    if (!Needs(held)) continue;
    const Shard& mine = map_.shards()[map_.held()[held]];
    const TableSpec& table = map_.tables()[mine.table];
    means_[held].assign(squares_[held].size(), 0.0f);
    for (int column = 0; column < table.column_blocks; ++column) {
      for (const size_t shard : map_.shards_of(mine.table, column)) {
        if (map_.shards()[shard].row_blocks != mine.row_blocks) continue;
        for (size_t i = 0; i < means_[held].size(); ++i) means_[held][i] += of_shard[shard][i];
      }
    }
    for (float& mean : means_[held]) mean /= static_cast<float>(table.embedding_dim);
  }
}

}  // namespace renzan
