#include "renzan/comm/communicator.h"

#include "renzan/base/error.h"

namespace renzan {

void Communicator::AllToAllV(std::span<const std::span<const std::byte>> send,
                             std::span<const std::span<std::byte>> recv) {
  Wait(Post("AllToAllV", send, recv));
}

void Communicator::AllGatherV(std::span<const std::byte> send,
                              std::span<const std::span<std::byte>> recv) {
  same_.assign(static_cast<size_t>(world_size()), send);
  Wait(Post("AllGatherV", same_, recv));
}

void Communicator::Barrier() {
  const std::byte here{1};
  here_.resize(static_cast<size_t>(world_size()));
  here_parts_.clear();
  for (std::byte& byte : here_) here_parts_.emplace_back(&byte, 1);
  same_.assign(here_.size(), {&here, 1});
  Wait(Post("Barrier", same_, here_parts_));
}

void Exchange::Post(const char* operation, std::span<const std::span<const std::byte>> send,
                    std::span<const std::span<std::byte>> recv) {
  CHECK(!in_flight_);
  ticket_ = comm_.Post(operation, send, recv);
  in_flight_ = true;
}

void Exchange::Wait() {
  CHECK(in_flight_);
  // An error leaves the communicator unusable, with nothing in flight.
  in_flight_ = false;
  comm_.Wait(ticket_);
}

}  // namespace renzan
