#include "renzan/embedding/error_feedback.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "renzan/base/xxhash.h"

namespace renzan {
namespace {

int64_t KeyOf(std::span<const int64_t> bag) {
  if (bag.size() == 1) return bag[0];
  return static_cast<int64_t>(Xxh3OfBlock(bag.data(), bag.size_bytes()));
}

}  // namespace

int64_t ErrorFeedbackSlots(const TableSpec& table, int64_t rows) {
  if (table.multi_hot) return rows;  // distinct bags may outnumber the table's rows
  return std::min<int64_t>(
      rows, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(table.num_embeddings))));
}

ErrorFeedback::ErrorFeedback(const ShardMap& map, int64_t rows)
    : first_virtual_worker_(map.own().begin) {
  if (rows == 0) return;
  for (size_t t = 0; t < map.tables().size(); ++t) bags_.push_back(map.bags_per_virtual_worker(t));
  for (int v = 0; v < map.own().size(); ++v) {
    std::vector<Slots>& tables = slots_.emplace_back();
    for (const TableSpec& table : map.tables()) {
      const size_t slots = static_cast<size_t>(ErrorFeedbackSlots(table, rows));
      Slots& s = tables.emplace_back();
      s.keys.resize(slots);
      s.dim = table.embedding_dim;
      s.residuals = AlignedBuffer(slots * static_cast<size_t>(s.dim));
    }
  }
}

uint64_t ErrorFeedback::bytes() const {
  uint64_t sum = 0;
  for (const std::vector<Slots>& tables : slots_)
    for (const Slots& slots : tables)
      sum += slots.keys.size() * sizeof(int64_t) + slots.residuals.size() * sizeof(float);
  return sum;
}

void ErrorFeedback::ClaimSlots(const IdsView& ids, size_t table, int virtual_worker,
                               std::vector<Claim>* claims) {
  Slots& slots = of(virtual_worker, table);
  const size_t mask = slots.keys.size() - 1;
  const size_t n = static_cast<size_t>(bags_[table]);
  const size_t first = static_cast<size_t>(virtual_worker - first_virtual_worker_) * n;
  claims->resize(n);
  for (size_t i = 0; i < n; ++i) {
    size_t begin = first + i, end = begin + 1;
    if (!ids.offsets.empty()) {
      begin = static_cast<size_t>(ids.offsets[first + i]);
      end = static_cast<size_t>(ids.offsets[first + i + 1]);
    }
    if (begin == end) continue;
    const int64_t key = KeyOf(ids.values.subspan(begin, end - begin));
    const size_t slot = static_cast<size_t>(key) & mask;
    float* const residual = slots.residuals.data() + slot * static_cast<size_t>(slots.dim);
    (*claims)[i] = {residual, std::exchange(slots.keys[slot], key) == key};
  }
}

}  // namespace renzan
