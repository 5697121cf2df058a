#include "renzan/embedding/input_dist.h"

#include <algorithm>
#include <limits>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// Offsets are 32 bits wide.
constexpr size_t kMaxLookups = std::numeric_limits<int32_t>::max();

// All-to-all of vectors whose sizes both sides already know.
template <typename T>
void Post(const std::vector<std::vector<T>>& send, std::vector<std::vector<T>>* recv,
          Exchange* exchange) {
  thread_local std::vector<std::span<const std::byte>> from;
  thread_local std::vector<std::span<std::byte>> to;
  from.clear();
  to.clear();
  for (const auto& message : send) from.push_back(std::as_bytes(std::span(message)));
  for (auto& message : *recv) to.push_back(std::as_writable_bytes(std::span(message)));
  exchange->Post("input_dist", from, to);
}

}  // namespace

InputDist::InputDist(Communicator& comm, const ShardMap& map)
    : comm_(comm),
      map_(map),
      own_(map.shards().size()),
      rows_(map.shards().size()),
      held_(map.held().size()),
      exchange_(comm) {
  const size_t world_size = static_cast<size_t>(map.world_size());
  announced_.resize(world_size);
  counts_.resize(world_size);
  send_.resize(world_size);
  recv_.resize(world_size);
}

bool InputDist::AnyJagged() const {
  for (size_t s = 0; s < own_.size(); ++s)
    if (map_.is_jagged(s)) return true;
  return false;
}

void InputDist::Start(std::span<const IdsView> ids) {
  CHECK(ids.size() == map_.tables().size());
  for (size_t t = 0; t < ids.size(); ++t) Divide(t, ids[t]);
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
  Unpack();
}

// Divides a table's ids among its shards.
void InputDist::Divide(size_t table, const IdsView& ids) {
  const TableSpec& spec = map_.tables()[table];
  const size_t samples = static_cast<size_t>(map_.samples_of(map_.rank()));
  CHECK(spec.multi_hot ? ids.offsets.size() == samples + 1 : ids.values.size() == samples);
  if (spec.row_blocks == 1) {
    CopyWhole(map_.shard_of_block(table, 0), ids);
  } else {
    DivideByBlocks(table, ids);
  }
  const std::vector<size_t>& of_first = map_.shards_of(table, 0);
  for (const size_t shard : of_first) CountBags(&own_[shard]);
  for (int column = 1; column < spec.column_blocks; ++column)
    for (size_t i = 0; i < of_first.size(); ++i) {
      const size_t shard = map_.shards_of(table, column)[i];
      own_[shard] = own_[of_first[i]];
      rows_[shard] = rows_[of_first[i]];
    }
}

void InputDist::CopyWhole(size_t shard, const IdsView& ids) {
  rows_[shard].assign(ids.values.begin(), ids.values.end());
  std::vector<int32_t>& lengths = own_[shard].lengths;
  lengths.clear();
  for (size_t i = 0; i + 1 < ids.offsets.size(); ++i)
    lengths.push_back(ids.offsets[i + 1] - ids.offsets[i]);
}

void InputDist::DivideByBlocks(size_t table, const IdsView& ids) {
  const int64_t mask = map_.tables()[table].row_blocks - 1;
  const size_t samples = static_cast<size_t>(map_.samples_of(map_.rank()));
  for (const size_t shard : map_.shards_of(table, 0)) {
    rows_[shard].clear();
    own_[shard].lengths.assign(map_.is_jagged(shard) ? samples : 0, 0);
  }
  const auto add = [&](size_t sample, int32_t id) {
    const size_t shard = map_.shard_of_block(table, id & mask);
    rows_[shard].push_back(map_.rows_of(shard).Local(id));
    if (!own_[shard].lengths.empty()) ++own_[shard].lengths[sample];
  };
  if (ids.offsets.empty()) {
    for (size_t i = 0; i < samples; ++i) add(i, ids.values[i]);
    return;
  }
  for (size_t i = 0; i < samples; ++i) {
    bag_.clear();
    for (int32_t at = ids.offsets[i]; at < ids.offsets[i + 1]; ++at)
      bag_.push_back(static_cast<uint64_t>(ids.values[static_cast<size_t>(at)] & mask) << 32 |
                     static_cast<uint32_t>(at));
    std::sort(bag_.begin(), bag_.end());
    for (const uint64_t key : bag_) add(i, ids.values[static_cast<uint32_t>(key)]);
  }
}

void InputDist::CountBags(OwnBags* bags) const {
  const int64_t n = map_.samples_per_virtual_worker();
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
  Post(announced_, &counts_, &exchange_);
}

// Of every shard of the receiver: if it is jagged, the sample of each bag and, where bags may have
// several rows, its length; then the rows.
void InputDist::PostRows() {
  for (size_t r = 0; r < send_.size(); ++r) {
    std::vector<int32_t>& message = send_[r];
    message.clear();
    for (const size_t shard : map_.held_by(static_cast<int>(r))) {
      const std::vector<int32_t>& lengths = own_[shard].lengths;
      const bool multi_hot = map_.table_of(shard).multi_hot;
      for (size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] == 0) continue;
        message.push_back(static_cast<int32_t>(i));
        if (multi_hot) message.push_back(lengths[i]);
      }
      message.insert(message.end(), rows_[shard].begin(), rows_[shard].end());
    }
    size_t expected = 0, jagged = 0;
    for (const size_t shard : map_.held()) {
      if (!map_.is_jagged(shard)) {
        expected += static_cast<size_t>(map_.samples_of(static_cast<int>(r)));
        continue;
      }
      const Count& count = counts_[r][jagged++];
      const int words_per_bag = map_.table_of(shard).multi_hot ? 2 : 1;
      expected += static_cast<size_t>(count.bags) * static_cast<size_t>(words_per_bag) +
                  static_cast<size_t>(count.rows);
    }
    recv_[r].resize(expected);
  }
  Post(send_, &recv_, &exchange_);
}

void InputDist::Unpack() {
  const std::vector<size_t>& mine = map_.held();
  for (ShardIds& ids : held_) {
    ids.rows.clear();
    ids.offsets.clear();
    ids.first_bag.assign(1, 0);
    ids.virtual_worker.clear();
  }
  for (size_t r = 0; r < recv_.size(); ++r) {
    const int32_t* next = recv_[r].data();
    const IndexRange assigned = map_.assigned_to(static_cast<int>(r));
    size_t jagged = 0;
    for (size_t k = 0; k < mine.size(); ++k) {
      const int32_t samples = static_cast<int32_t>(map_.samples_of(static_cast<int>(r)));
      const bool is_jagged = map_.is_jagged(mine[k]);
      const Count count = is_jagged ? counts_[r][jagged++] : Count{samples, samples};
      next = UnpackShard(next, count, mine[k], assigned, &held_[k]);
    }
  }
}

const int32_t* InputDist::UnpackShard(const int32_t* next, Count count, size_t shard,
                                      IndexRange assigned, ShardIds* ids) const {
  const int32_t n = static_cast<int32_t>(map_.samples_per_virtual_worker());
  const bool is_jagged = map_.is_jagged(shard), multi_hot = map_.table_of(shard).multi_hot;
  if (ids->rows.size() + static_cast<size_t>(count.rows) > kMaxLookups)
    Fail(ErrorCode::kData, "{} has over {} ids in one global batch: lower training.batch_size",
         map_.table_of(shard).name, kMaxLookups);
  if (multi_hot && ids->offsets.empty()) ids->offsets.push_back(0);
  int v = assigned.begin;
  int32_t first_of_next = n;  // the first sample of the next virtual worker
  const auto end_virtual_workers_before = [&](int32_t sample) {
    for (; sample >= first_of_next; ++v, first_of_next += n)
      ids->first_bag.push_back(static_cast<int32_t>(ids->virtual_worker.size()));
  };
  for (int32_t bag = 0; bag < count.bags; ++bag) {
    end_virtual_workers_before(is_jagged ? *next++ : bag);
    ids->virtual_worker.push_back(static_cast<uint16_t>(v));
    if (multi_hot) ids->offsets.push_back(ids->offsets.back() + *next++);
  }
  end_virtual_workers_before(assigned.size() * n);
  ids->rows.insert(ids->rows.end(), next, next + count.rows);
  return next + count.rows;
}

}  // namespace renzan
