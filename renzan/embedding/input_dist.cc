#include "renzan/embedding/input_dist.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/embedding/block_order.h"

namespace renzan {
namespace {

// Offsets are 32 bits wide.
constexpr size_t kMaxLookups = std::numeric_limits<int32_t>::max();

// All-to-all of vectors whose sizes both sides already know. `rank`, this worker, sends itself
// nothing.
template <typename T>
void Post(size_t rank, const std::vector<std::vector<T>>& send, std::vector<std::vector<T>>* recv,
          Exchange* exchange) {
  thread_local std::vector<std::span<const std::byte>> from;
  thread_local std::vector<std::span<std::byte>> to;
  from.clear();
  to.clear();
  for (const auto& message : send) from.push_back(std::as_bytes(std::span(message)));
  for (auto& message : *recv) to.push_back(std::as_writable_bytes(std::span(message)));
  from[rank] = {};
  to[rank] = {};
  exchange->Post("input_dist", from, to);
}

}  // namespace

InputDist::InputDist(Communicator& comm, ThreadPool& pool, const ShardMap& map)
    : comm_(comm),
      pool_(pool),
      map_(map),
      own_(map.shards().size()),
      rows_(map.shards().size()),
      divided_(map.shards().size()),
      weights_(map.shards().size()),
      divided_weights_(map.shards().size()),
      held_(map.held().size()),
      exchange_(comm) {
  const size_t world_size = static_cast<size_t>(map.world_size());
  announced_.resize(world_size);
  counts_.resize(world_size);
  send_.resize(world_size);
  recv_.resize(world_size);
  // If every bag has exactly one row, the bags are the same for every batch.
  for (size_t k = 0; k < held_.size(); ++k) {
    held_[k].first_bag.push_back(0);
    const size_t shard = map.held()[k];
    if (map.is_jagged(shard)) continue;
    const auto n = static_cast<size_t>(map.bags_per_virtual_worker(map.shards()[shard].table));
    for (int v = 0; v < map.virtual_workers(); ++v) {
      held_[k].virtual_worker.insert(held_[k].virtual_worker.end(), n, static_cast<uint16_t>(v));
      held_[k].first_bag.push_back(static_cast<int32_t>(held_[k].virtual_worker.size()));
    }
  }
}

size_t InputDist::OwnBagsOf(size_t table) const {
  return static_cast<size_t>(map_.own().size() * map_.bags_per_virtual_worker(table));
}

bool InputDist::AnyJagged() const {
  for (size_t s = 0; s < own_.size(); ++s)
    if (map_.is_jagged(s)) return true;
  return false;
}

void InputDist::Start(std::span<const IdsView> ids) {
  CHECK(ids.size() == map_.tables().size());
  pool_.ParallelTasks(ids.size(), [&](int, size_t t) { Divide(t, ids[t]); });
  if (AnyJagged()) {
    PostCounts();
  } else {
    PostRows();
  }
}

void InputDist::Continue() {
  if (!AnyJagged()) return;
  exchange_.Wait();
  PostRows();
}

void InputDist::Finish() {
  exchange_.Wait();
  const size_t senders = recv_.size();
  pool_.ParallelTasks(held_.size(), [&](int, size_t k) {
    Unpack(std::span(received_).subspan(k * senders, senders), &held_[k]);
  });
}

// Divides a table's ids among its shards.
void InputDist::Divide(size_t table, const IdsView& ids) {
  const TableSpec& spec = map_.tables()[table];
  const size_t bags = OwnBagsOf(table);
  CHECK(!spec.weighted || ids.weights.size() == ids.values.size());
  CHECK(spec.multi_hot ? ids.offsets.size() == bags + 1 : ids.values.size() == bags);
  if (spec.row_blocks == 1) {
    TakeWhole(map_.shard_of_block(table, 0), ids);
  } else if (spec.weighted) {
    DivideByBlocks<true>(table, ids);
  } else {
    DivideByBlocks<false>(table, ids);
  }
  for (const size_t shard : map_.shards_of(table, 0)) {
    rows_[shard] = divided_[shard];
    weights_[shard] = divided_weights_[shard];
  }
  const std::vector<size_t>& of_first = map_.shards_of(table, 0);
  for (const size_t shard : of_first) CountBags(table, &own_[shard]);
  for (int column = 1; column < spec.column_blocks; ++column)
    for (size_t i = 0; i < of_first.size(); ++i) {
      const size_t shard = map_.shards_of(table, column)[i];
      own_[shard] = own_[of_first[i]];
      rows_[shard] = rows_[of_first[i]];
      weights_[shard] = weights_[of_first[i]];
    }
}

void InputDist::TakeWhole(size_t shard, const IdsView& ids) {
  std::vector<int32_t>& rows = divided_[shard];
  rows.resize(ids.values.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(ids.values[i]);
  if (IsWeighted(shard)) divided_weights_[shard].assign(ids.weights.begin(), ids.weights.end());
  std::vector<int32_t>& lengths = own_[shard].lengths;
  lengths.resize(ids.offsets.empty() ? 0 : ids.offsets.size() - 1);
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = ids.offsets[i + 1] - ids.offsets[i];
}

template <bool kWeighted>
void InputDist::DivideByBlocks(size_t table, const IdsView& ids) {
  const int64_t mask = map_.tables()[table].row_blocks - 1;
  const size_t bags = OwnBagsOf(table);
  for (const size_t shard : map_.shards_of(table, 0)) {
    divided_[shard].clear();
    if constexpr (kWeighted) divided_weights_[shard].clear();
    own_[shard].lengths.assign(map_.is_jagged(shard) ? bags : 0, 0);
  }
  const auto add = [&](size_t bag, size_t at) {
    const int64_t id = ids.values[at];
    const size_t shard = map_.shard_of_block(table, id & mask);
    divided_[shard].push_back(map_.rows_of(shard).Local(id));
    if constexpr (kWeighted) divided_weights_[shard].push_back(ids.weights[at]);
    if (!own_[shard].lengths.empty()) ++own_[shard].lengths[bag];
  };
  if (ids.offsets.empty()) {
    for (size_t i = 0; i < bags; ++i) add(i, i);
    return;
  }
  thread_local std::vector<uint64_t> scratch;
  for (size_t i = 0; i < bags; ++i)
    ForEachByBlock(map_.tables()[table], ids.values, ids.offsets[i], ids.offsets[i + 1], &scratch,
                   [&](size_t at) { add(i, at); });
}

void InputDist::CountBags(size_t table, OwnBags* bags) const {
  const int64_t n = map_.bags_per_virtual_worker(table);
  bags->first_bag.assign(1, 0);
  for (int v = 0; v < map_.own().size(); ++v) {
    int32_t count = static_cast<int32_t>(n);
    if (!bags->lengths.empty()) {
      const auto begin = bags->lengths.begin() + v * n;
      count = static_cast<int32_t>(n - std::count(begin, begin + n, 0));
    }
    bags->first_bag.push_back(bags->first_bag.back() + count);
  }
}

void InputDist::PostCounts() {
  const std::vector<size_t>& mine = map_.held();
  const auto jagged =
      std::count_if(mine.begin(), mine.end(), [&](size_t shard) { return map_.is_jagged(shard); });
  for (size_t r = 0; r < send_.size(); ++r) {
    announced_[r].clear();
    for (const size_t shard : map_.held_by(static_cast<int>(r)))
      if (map_.is_jagged(shard))
        announced_[r].push_back({.bags = own_[shard].first_bag.back(),
                                 .rows = static_cast<int32_t>(rows_[shard].size())});
    counts_[r].resize(static_cast<size_t>(jagged));
  }
  const size_t me = static_cast<size_t>(map_.rank());
  Post(me, announced_, &counts_, &exchange_);
  counts_[me] = announced_[me];
}

size_t InputDist::WordsOf(size_t shard, Count count) const {
  size_t per_bag = 0;
  if (map_.is_jagged(shard)) per_bag = map_.table_of(shard).multi_hot ? 2 : 1;
  return static_cast<size_t>(count.bags) * per_bag +
         static_cast<size_t>(count.rows) * (IsWeighted(shard) ? 2 : 1);
}

// A message holds, for every shard of the receiver: if it is jagged, the number of each bag and,
// where bags may have several rows, its length; then the rows; then their weights, if they have
// any.
void InputDist::PostRows() {
  const std::vector<size_t>& mine = map_.held();
  const size_t world_size = send_.size(), me = static_cast<size_t>(map_.rank());
  sent_.clear();
  received_.resize(mine.size() * world_size);
  for (size_t r = 0; r < world_size; ++r) {
    size_t words = 0;
    if (r != me) {
      for (const size_t shard : map_.held_by(static_cast<int>(r))) {
        const Count count = {.bags = own_[shard].first_bag.back(),
                             .rows = static_cast<int32_t>(rows_[shard].size())};
        sent_.push_back({r, shard, words, count});
        words += WordsOf(shard, count);
      }
    }
    send_[r].resize(words);
    words = 0;
    const int64_t theirs = map_.assigned_to(static_cast<int>(r)).size();
    for (size_t k = 0, jagged = 0; k < mine.size(); ++k) {
      const size_t table = map_.shards()[mine[k]].table;
      const auto all = static_cast<int32_t>(theirs * map_.bags_per_virtual_worker(table));
      const Count count = map_.is_jagged(mine[k]) ? counts_[r][jagged++] : Count{all, all};
      received_[k * world_size + r] = {r, k, words, count};
      words += WordsOf(mine[k], count);
    }
    recv_[r].resize(r == me ? 0 : words);
  }
  pool_.ParallelTasks(sent_.size(), [&](int, size_t i) { Pack(sent_[i]); });
  Post(me, send_, &recv_, &exchange_);
}

void InputDist::Pack(const Part& part) {
  int32_t* next = send_[part.rank].data() + part.first;
  const std::vector<int32_t>& lengths = own_[part.shard].lengths;
  const bool multi_hot = map_.table_of(part.shard).multi_hot;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0) continue;
    *next++ = static_cast<int32_t>(i);
    if (multi_hot) *next++ = lengths[i];
  }
  next = std::copy(rows_[part.shard].begin(), rows_[part.shard].end(), next);
  for (const float weight : weights_[part.shard]) *next++ = std::bit_cast<int32_t>(weight);
}

void InputDist::Unpack(std::span<const Part> parts, ShardIds* ids) {
  const size_t shard = map_.held()[parts[0].shard];
  size_t bags = 0, rows = 0;
  for (const Part& part : parts) {
    bags += static_cast<size_t>(part.count.bags);
    rows += static_cast<size_t>(part.count.rows);
  }
  if (rows > kMaxLookups)
    Fail(ErrorCode::kData, "{} has over {} in one global batch: lower training.batch_size",
         map_.table_of(shard).name, Counted(kMaxLookups, "id"));
  if (map_.is_jagged(shard)) {
    ids->virtual_worker.resize(bags);
    ids->first_bag.resize(1);
    ids->offsets.resize(map_.table_of(shard).multi_hot ? bags + 1 : 0);
    for (const Part& part : parts) UnpackBags(part, ids);
  }
  if (IsWeighted(shard)) UnpackWeights(parts, ids);
  // A single worker's rows that no other shard shares need no copy.
  if (parts.size() == 1 && map_.table_of(shard).column_blocks == 1) {
    std::swap(ids->rows, divided_[shard]);
    return;
  }
  ids->rows.clear();
  ids->rows.reserve(rows);
  for (const Part& part : parts) {
    const size_t n = static_cast<size_t>(part.count.rows);
    const std::span<const int32_t> of_part =
        IsOwn(part) ? rows_[shard]
                    : std::span(recv_[part.rank])
                          .subspan(part.first, WordsOf(shard, part.count))
                          .last(IsWeighted(shard) ? 2 * n : n)
                          .first(n);
    ids->rows.insert(ids->rows.end(), of_part.begin(), of_part.end());
  }
}

void InputDist::UnpackWeights(std::span<const Part> parts, ShardIds* ids) {
  const size_t shard = map_.held()[parts[0].shard];
  ids->weights.clear();
  for (const Part& part : parts) {
    const size_t n = static_cast<size_t>(part.count.rows);
    if (IsOwn(part)) {
      ids->weights.insert(ids->weights.end(), weights_[shard].begin(), weights_[shard].end());
      continue;
    }
    const size_t end = part.first + WordsOf(shard, part.count);
    for (const int32_t word : std::span(recv_[part.rank]).subspan(end - n, n))
      ids->weights.push_back(std::bit_cast<float>(word));
  }
  ids->bag_of_row.clear();
  for (size_t bag = 0; bag < ids->num_bags(); ++bag)
    ids->bag_of_row.resize(static_cast<size_t>(ids->offsets[bag + 1]), static_cast<int32_t>(bag));
}

void InputDist::UnpackBags(const Part& part, ShardIds* ids) const {
  const IndexRange assigned = map_.assigned_to(static_cast<int>(part.rank));
  const size_t shard = map_.held()[part.shard];
  const auto n = static_cast<int32_t>(map_.bags_per_virtual_worker(map_.shards()[shard].table));
  int32_t bag = ids->first_bag.back();
  const int32_t end = bag + part.count.bags;
  uint16_t* const virtual_worker = ids->virtual_worker.data();
  int32_t* const offsets = ids->offsets.empty() ? nullptr : ids->offsets.data();
  int v = assigned.begin;
  int32_t first_of_next = n;  // the first bag of the next virtual worker
  const auto add = [&](int32_t index, int32_t length) {
    for (; index >= first_of_next; ++v, first_of_next += n) ids->first_bag.push_back(bag);
    virtual_worker[bag] = static_cast<uint16_t>(v);
    if (offsets != nullptr) offsets[bag + 1] = offsets[bag] + length;
    ++bag;
  };
  if (IsOwn(part)) {
    const std::vector<int32_t>& lengths = own_[shard].lengths;
    for (size_t i = 0; i < lengths.size(); ++i)
      if (lengths[i] > 0) add(static_cast<int32_t>(i), lengths[i]);
  } else {
    const int32_t* next = recv_[part.rank].data() + part.first;
    while (bag < end) {
      const int32_t index = *next++;
      add(index, offsets != nullptr ? *next++ : 1);
    }
  }
  for (; v < assigned.end; ++v) ids->first_bag.push_back(end);
}

}  // namespace renzan
