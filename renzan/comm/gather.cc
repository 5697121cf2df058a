#include "renzan/comm/gather.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace renzan {

std::vector<std::string> GatherStrings(Communicator& comm, const std::string& mine) {
  const std::vector<uint64_t> sizes = AllGatherValues<uint64_t>(comm, mine.size());
  std::vector<std::string> texts(sizes.size());
  std::vector<std::span<std::byte>> parts;
  for (size_t r = 0; r < texts.size(); ++r) {
    texts[r].resize(sizes[r]);
    parts.push_back(std::as_writable_bytes(std::span(texts[r].data(), texts[r].size())));
  }
  comm.AllGatherV(std::as_bytes(std::span(mine.data(), mine.size())), parts);
  return texts;
}

void FindLocalRank(Communicator& comm, const std::string& machine) {
  const std::vector<std::string> machines = GatherStrings(comm, machine);
  const auto lower = machines.begin() + comm.rank();
  comm.set_local_rank(static_cast<int>(std::count(machines.begin(), lower, machine)));
}

std::string BroadcastString(Communicator& comm, const std::string& text) {
  uint64_t size = text.size();
  comm.Broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  std::string received = comm.rank() == 0 ? text : std::string(size, '\0');
  if (size > 0)
    comm.Broadcast(std::as_writable_bytes(std::span(received.data(), received.size())), 0);
  return received;
}

}  // namespace renzan
