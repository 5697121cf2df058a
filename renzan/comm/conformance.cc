#include "renzan/comm/conformance.h"

#include <cstdint>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"

namespace renzan {
namespace {

using Bytes = std::vector<std::byte>;

// The part sent from one worker to another in `round`: its size and content depend only on these
// three.
Bytes Part(uint64_t round, size_t from, size_t to, size_t scale) {
  const uint64_t counter = round << 32 | from << 16 | to;
  const auto draw = Philox::Draw(round, counter, 1);
  // A third of the parts are empty.
  Bytes part(draw[0] % 3 == 0 ? 0 : draw[1] % scale + 1);
  for (size_t i = 0; i < part.size(); ++i)
    part[i] = static_cast<std::byte>(draw[2] + i * 7 + i / 253);
  return part;
}

void Compare(const Bytes& got, const Bytes& expected, const char* operation, uint64_t round,
             size_t from, size_t to) {
  if (got != expected)
    Fail(ErrorCode::kSoftware, "{} in round {}: {} bytes from worker {} to {} differ", operation,
         round, expected.size(), from, to);
}

void CheckAllToAllV(Communicator& communicator, uint64_t round, size_t scale) {
  const auto world = static_cast<size_t>(communicator.world_size());
  const auto rank = static_cast<size_t>(communicator.rank());
  std::vector<Bytes> sent, received, expected;
  for (size_t p = 0; p < world; ++p) {
    sent.push_back(Part(round, rank, p, scale));
    expected.push_back(Part(round, p, rank, scale));
    received.emplace_back(expected.back().size());
  }
  const std::vector<std::span<const std::byte>> send(sent.begin(), sent.end());
  const std::vector<std::span<std::byte>> recv(received.begin(), received.end());
  communicator.AllToAllV(send, recv);
  for (size_t p = 0; p < world; ++p) Compare(received[p], expected[p], "AllToAllV", round, p, rank);
}

// Several exchanges in flight, awaited in the order in which they were posted or in another one.
void CheckPost(Communicator& communicator, uint64_t round, size_t scale) {
  constexpr size_t kInFlight = 3;
  const auto world = static_cast<size_t>(communicator.world_size());
  const auto rank = static_cast<size_t>(communicator.rank());
  std::vector<Bytes> sent[kInFlight], received[kInFlight];
  Communicator::Ticket tickets[kInFlight];
  for (size_t i = 0; i < kInFlight; ++i) {
    for (size_t p = 0; p < world; ++p) {
      sent[i].push_back(Part(round * kInFlight + i, rank, p, scale));
      received[i].emplace_back(Part(round * kInFlight + i, p, rank, scale).size());
    }
    tickets[i] = communicator.Post(
        "Post", std::vector<std::span<const std::byte>>(sent[i].begin(), sent[i].end()),
        std::vector<std::span<std::byte>>(received[i].begin(), received[i].end()));
  }
  for (size_t i = 0; i < kInFlight; ++i) {
    const size_t now = round % 2 == 0 ? i : kInFlight - 1 - i;
    communicator.Wait(tickets[now]);
    for (size_t p = 0; p < world; ++p)
      Compare(received[now][p], Part(round * kInFlight + now, p, rank, scale), "Post", round, p,
              rank);
  }
}

void CheckAllGatherV(Communicator& communicator, uint64_t round, size_t scale) {
  const auto world = static_cast<size_t>(communicator.world_size());
  const auto rank = static_cast<size_t>(communicator.rank());
  const Bytes send = Part(round, rank, rank, scale);
  std::vector<Bytes> received, expected;
  for (size_t p = 0; p < world; ++p) {
    expected.push_back(Part(round, p, p, scale));
    received.emplace_back(expected.back().size());
  }
  communicator.AllGatherV(send,
                          std::vector<std::span<std::byte>>(received.begin(), received.end()));
  for (size_t p = 0; p < world; ++p)
    Compare(received[p], expected[p], "AllGatherV", round, p, rank);
}

void CheckBroadcast(Communicator& communicator, uint64_t round, size_t scale) {
  const auto root = static_cast<size_t>(round) % static_cast<size_t>(communicator.world_size());
  const Bytes expected = Part(round, root, root, scale);
  Bytes data = expected;
  if (communicator.rank() != static_cast<int>(root)) data.assign(data.size(), std::byte{0});
  communicator.Broadcast(data, static_cast<int>(root));
  Compare(data, expected, "Broadcast", round, root, static_cast<size_t>(communicator.rank()));
}

}  // namespace

void CheckConformance(Communicator& communicator) {
  uint64_t round = 0;
  for (size_t scale : {1u, 10u, 1000u, 100000u, 5000000u}) {
    const int repeats = scale > 1000000 ? 2 : 6;
    for (int repeat = 0; repeat < repeats; ++repeat, ++round) {
      CheckAllToAllV(communicator, round, scale);
      CheckPost(communicator, round, scale);
      CheckAllGatherV(communicator, round, scale);
      CheckBroadcast(communicator, round, scale);
      communicator.Barrier();
    }
  }
}

}  // namespace renzan
