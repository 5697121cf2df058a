#include "renzan/embedding/input_dist.h"

#include <algorithm>
#include <limits>

#include "renzan/base/error.h"

namespace renzan {
namespace {

// Offsets are 32 bits wide.
constexpr size_t kMaxLookups = std::numeric_limits<int32_t>::max();

using Messages = std::vector<std::vector<int32_t>>;

// All-to-all of vectors whose sizes both sides already know.
void Post(const Messages& send, Messages* recv, Exchange* exchange) {
  thread_local std::vector<std::span<const std::byte>> from;
  thread_local std::vector<std::span<std::byte>> to;
  from.clear();
  to.clear();
  for (const auto& message : send) from.push_back(std::as_bytes(std::span(message)));
  for (auto& message : *recv) to.push_back(std::as_writable_bytes(std::span(message)));
  exchange->Post("input_dist", from, to);
}

}  // namespace

InputDist::InputDist(Communicator& comm, std::span<const TableSpec> tables,
                     std::span<const int> owner, std::vector<int64_t> samples)
    : comm_(comm), samples_(std::move(samples)), exchange_(comm) {
  const size_t world_size = static_cast<size_t>(comm.world_size());
  CHECK(samples_.size() == world_size && owner.size() == tables.size());
  tables_of_.resize(world_size);
  for (size_t t = 0; t < tables.size(); ++t) {
    tables_of_[static_cast<size_t>(owner[t])].push_back(t);
    multi_hot_.push_back(tables[t].multi_hot);
    names_.push_back(tables[t].name);
  }
  counts_.resize(world_size);
  announced_.resize(world_size);
  send_.resize(world_size);
  recv_.resize(world_size);
  ids_.resize(tables_of_[static_cast<size_t>(comm.rank())].size());
}

// One-hot tables have as many ids as samples; only multi-hot ones must announce a size.
bool InputDist::AnyMultiHot() const {
  return std::find(multi_hot_.begin(), multi_hot_.end(), true) != multi_hot_.end();
}

void InputDist::Start(std::span<const IdsView> ids) {
  CHECK(ids.size() == multi_hot_.size());
  own_ids_.assign(ids.begin(), ids.end());
  if (AnyMultiHot()) {
    PostCounts();
  } else {
    PostIds();
  }
}

void InputDist::Continue() {
  if (!AnyMultiHot()) return;
  exchange_.Wait();
  PostIds();
}

void InputDist::Finish() {
  exchange_.Wait();
  Unpack();
}

void InputDist::PostCounts() {
  const std::vector<size_t>& own = tables_of_[static_cast<size_t>(comm_.rank())];
  const size_t own_multi_hot = static_cast<size_t>(
      std::count_if(own.begin(), own.end(), [&](size_t t) { return multi_hot_[t]; }));
  for (size_t r = 0; r < tables_of_.size(); ++r) {
    announced_[r].clear();
    for (size_t t : tables_of_[r])
      if (multi_hot_[t]) announced_[r].push_back(static_cast<int32_t>(own_ids_[t].values.size()));
    counts_[r].resize(own_multi_hot);
  }
  Post(announced_, &counts_, &exchange_);
}

void InputDist::PostIds() {
  const std::vector<size_t>& own = tables_of_[static_cast<size_t>(comm_.rank())];
  const int64_t my_samples = samples_[static_cast<size_t>(comm_.rank())];
  for (size_t r = 0; r < tables_of_.size(); ++r) {
    std::vector<int32_t>& message = send_[r];
    message.clear();
    for (size_t t : tables_of_[r]) {
      if (multi_hot_[t]) {
        CHECK(static_cast<int64_t>(own_ids_[t].offsets.size()) == my_samples + 1);
        for (int64_t i = 0; i < my_samples; ++i) {
          const size_t s = static_cast<size_t>(i);
          message.push_back(own_ids_[t].offsets[s + 1] - own_ids_[t].offsets[s]);
        }
      } else {
        CHECK(static_cast<int64_t>(own_ids_[t].values.size()) == my_samples);
      }
      message.insert(message.end(), own_ids_[t].values.begin(), own_ids_[t].values.end());
    }
    size_t expected = 0, multi_hot = 0;
    for (size_t t : own) {
      expected += static_cast<size_t>(samples_[r]);
      if (multi_hot_[t]) expected += static_cast<size_t>(counts_[r][multi_hot++]);
    }
    recv_[r].resize(expected);
  }
  Post(send_, &recv_, &exchange_);
}

void InputDist::Unpack() {
  const std::vector<size_t>& own = tables_of_[static_cast<size_t>(comm_.rank())];
  for (size_t k = 0; k < own.size(); ++k) {
    ids_[k].values.clear();
    ids_[k].offsets.clear();
    if (multi_hot_[own[k]]) ids_[k].offsets.push_back(0);
  }
  for (size_t r = 0; r < tables_of_.size(); ++r) {
    const int32_t* next = recv_[r].data();
    const size_t samples = static_cast<size_t>(samples_[r]);
    size_t multi_hot = 0;
    for (size_t k = 0; k < own.size(); ++k) {
      GlobalIds& table = ids_[k];
      const bool jagged = multi_hot_[own[k]];
      const size_t lookups = jagged ? static_cast<size_t>(counts_[r][multi_hot++]) : samples;
      if (table.values.size() + lookups > kMaxLookups)
        Fail(ErrorCode::kData, "{} has over {} ids in one global batch: lower training.batch_size",
             names_[own[k]], kMaxLookups);
      if (jagged) {
        for (size_t i = 0; i < samples; ++i)
          table.offsets.push_back(table.offsets.back() + next[i]);
        next += samples;
      }
      table.values.insert(table.values.end(), next, next + lookups);
      next += lookups;
    }
  }
}

}  // namespace renzan
