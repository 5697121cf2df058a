#pragma once

// Exchanges small values between workers. Every rank makes the same calls.

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "renzan/comm/communicator.h"

namespace renzan {

// Every rank's value, by rank, on every rank.
template <typename T>
std::vector<T> AllGatherValues(Communicator& comm, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<size_t>(comm.world_size()));
  std::vector<std::span<std::byte>> parts;
  for (T& value : all) parts.push_back(std::as_writable_bytes(std::span(&value, 1)));
  comm.AllGatherV(std::as_bytes(std::span(&mine, 1)), parts);
  return all;
}

// Every rank's text, by rank, on every rank.
std::vector<std::string> GatherStrings(Communicator& comm, const std::string& mine);

// Numbers the workers of each `machine` by rank, and sets the communicator's local rank. `machine`
// identifies the workers that share GPUs. Not all launchers number them, and the ranks of a machine
// need not be consecutive.
void FindLocalRank(Communicator& comm, const std::string& machine);

// Rank 0's text on every rank.
std::string BroadcastString(Communicator& comm, const std::string& text);

}  // namespace renzan
