#include "renzan/embedding/row_messages.h"

#include <utility>

namespace renzan {

RowMessages::RowMessages(Communicator& comm, const ShardMap& map, Options options)
    : comm_(comm),
      map_(map),
      options_(std::move(options)),
      held_at_(map.held().size()),
      samples_at_(static_cast<size_t>(map.world_size())),
      of_held_(static_cast<size_t>(map.world_size())),
      of_samples_(static_cast<size_t>(map.world_size())),
      exchange_(comm) {
  for (std::vector<size_t>& at : held_at_) at.resize(static_cast<size_t>(map.virtual_workers()));
  for (int r = 0; r < map.world_size(); ++r)
    samples_at_[static_cast<size_t>(r)].resize(
        map.held_by(r).size(), std::vector<size_t>(static_cast<size_t>(map.own().size())));
}

void RowMessages::LayOut(const InputDist& ids) {
  for (int r = 0; r < map_.world_size(); ++r) {
    const size_t rank = static_cast<size_t>(r);
    size_t held = 0, samples = 0;
    const IndexRange theirs = map_.assigned_to(r);
    for (size_t k = 0; k < held_at_.size(); ++k) {
      const std::vector<int32_t>& first = ids.of_held(k).first_bag;
      const size_t row = Travels(map_.held()[k], r) ? row_bytes(map_.held()[k]) : 0;
      for (int v = theirs.begin; v < theirs.end; ++v) {
        const size_t i = static_cast<size_t>(v);
        held_at_[k][i] = held;
        held += static_cast<size_t>(first[i + 1] - first[i]) * row;
      }
    }
    const std::vector<size_t>& shards = map_.held_by(r);
    for (size_t k = 0; k < shards.size(); ++k) {
      const std::vector<int32_t>& first = ids.own_bags(shards[k]).first_bag;
      const size_t row = Travels(shards[k], r) ? row_bytes(shards[k]) : 0;
      for (size_t i = 0; i + 1 < first.size(); ++i) {
        samples_at_[rank][k][i] = samples;
        samples += static_cast<size_t>(first[i + 1] - first[i]) * row;
      }
    }
    if (r == map_.rank()) {
      CHECK(held == samples);
      held = 0;  // the same message
    }
    of_held_[rank].resize(held);
    of_samples_[rank].resize(samples);
  }
}

std::byte* RowMessages::OfHeld(size_t held, int virtual_worker) {
  const int rank = map_.rank_of(virtual_worker);
  std::vector<std::vector<std::byte>>& messages = rank == map_.rank() ? of_samples_ : of_held_;
  return messages[static_cast<size_t>(rank)].data() +
         held_at_[held][static_cast<size_t>(virtual_worker)];
}

std::byte* RowMessages::OfSamples(int holder, size_t held_by_it, int virtual_worker) {
  const size_t rank = static_cast<size_t>(holder);
  return of_samples_[rank].data() +
         samples_at_[rank][held_by_it][static_cast<size_t>(virtual_worker - map_.own().begin)];
}

void RowMessages::Send(const char* operation, bool from_holders) {
  if (comm_.world_size() == 1) return;
  const size_t me = static_cast<size_t>(comm_.rank());
  auto& send = from_holders ? of_held_ : of_samples_;
  auto& receive = from_holders ? of_samples_ : of_held_;
  from_.assign(send.begin(), send.end());
  to_.assign(receive.begin(), receive.end());
  from_[me] = {};
  to_[me] = {};
  exchange_.Post(operation, from_, to_);
}

void RowMessages::Wait() {
  if (exchange_.in_flight()) exchange_.Wait();
}

}  // namespace renzan
