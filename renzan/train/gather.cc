#include "renzan/train/gather.h"

#include <cstdint>
#include <span>

namespace renzan {

std::vector<std::string> GatherStrings(Communicator& comm, const std::string& mine) {
  const size_t world = static_cast<size_t>(comm.world_size());
  std::vector<uint64_t> sizes(world);
  const uint64_t size = mine.size();
  std::vector<std::span<std::byte>> parts;
  for (uint64_t& s : sizes) parts.push_back(std::as_writable_bytes(std::span(&s, 1)));
  comm.AllGatherV(std::as_bytes(std::span(&size, 1)), parts);

  std::vector<std::string> texts(world);
  parts.clear();
  for (size_t r = 0; r < world; ++r) {
    texts[r].resize(sizes[r]);
    parts.push_back(std::as_writable_bytes(std::span(texts[r].data(), texts[r].size())));
  }
  comm.AllGatherV(std::as_bytes(std::span(mine.data(), mine.size())), parts);
  return texts;
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
