// One worker of the tests that start real processes: comm_test_worker <backend> <mode> [rank].
//
//   conform       runs CheckConformance
//   reduce        prints the SHA-256 of a tree reduction
//   die RANK      worker RANK kills itself in the middle of the run
//   hang RANK     worker RANK stops answering
//   abandon RANK  worker RANK frees its buffers while they are exchanged
//   stop RANK     worker RANK stops (SIGSTOP) while it receives the last message

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/philox.h"
#include "renzan/base/sha256.h"
#include "renzan/comm/backends.h"
#include "renzan/comm/conformance.h"
#include "renzan/comm/tree_reduce.h"
#include "renzan/comm/virtual_workers.h"

namespace renzan {
namespace {

void PrintReduction(Communicator& communicator) {
  constexpr int kVirtualWorkers = 8;
  constexpr size_t kLength = 100003;
  const IndexRange own =
      VirtualWorkerRange(kVirtualWorkers, communicator.world_size(), communicator.rank());
  std::vector<std::vector<float>> leaves;
  for (int v = own.begin; v < own.end; ++v) {
    leaves.emplace_back(kLength);
    for (size_t i = 0; i < kLength; ++i)
      leaves.back()[i] = Philox::Uniform(Philox::Draw(static_cast<uint64_t>(v), i)[0]) - 0.5f;
  }
  ThreadPool pool(2);
  TreeReducer reducer(communicator, pool, kVirtualWorkers, kLength, FloatType::kBFloat16);
  std::vector<float> sum(kLength);
  reducer.Reduce(std::vector<std::span<float>>(leaves.begin(), leaves.end()), sum);
  Sha256 hash;
  hash.Update(sum.data(), sum.size() * sizeof(float));
  std::printf("sum %s\n", hash.HexDigest().c_str());
}

// Its peers must learn of it, and nothing may use the freed pages afterwards.
[[noreturn]] void AbandonAnExchange(Communicator& communicator) {
  constexpr size_t kBytes = size_t{64} << 20;
  const size_t world = static_cast<size_t>(communicator.world_size());
  void* const pages =
      mmap(nullptr, world * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  {
    std::vector<std::span<std::byte>> parts;
    for (size_t p = 0; p < world; ++p)
      parts.emplace_back(static_cast<std::byte*>(pages) + p * kBytes, kBytes);
    parts[static_cast<size_t>(communicator.rank())] = {};
    Exchange exchange(communicator);
    exchange.Post("abandoned", std::vector<std::span<const std::byte>>(world), parts);
    usleep(20000);
  }
  munmap(pages, world * kBytes);
  usleep(200000);
  Fail(ErrorCode::kSoftware, "abandoned its exchange");
}

// What the victim's peers send to it.
void SendTo(int victim, Communicator& communicator, size_t bytes) {
  const std::vector<std::byte> large(bytes);
  std::vector<std::span<const std::byte>> send(static_cast<size_t>(communicator.world_size()));
  send[static_cast<size_t>(victim)] = large;
  communicator.AllToAllV(send, std::vector<std::span<std::byte>>(send.size()));
}

// More than can be in flight to a receiver that does not read, and less than a sender's socket
// takes.
constexpr size_t kLastMessage = 200000;

void StopWhileReceiving(Communicator& communicator) {
  const size_t world = static_cast<size_t>(communicator.world_size());
  std::vector<std::vector<std::byte>> received(world, std::vector<std::byte>(kLastMessage));
  received[static_cast<size_t>(communicator.rank())].clear();
  Exchange exchange(communicator);
  exchange.Post("last message", std::vector<std::span<const std::byte>>(world),
                std::vector<std::span<std::byte>>(received.begin(), received.end()));
  raise(SIGSTOP);
  exchange.Wait();
}

[[noreturn]] void RunForever(Communicator& communicator, bool is_victim, bool dies) {
  std::vector<std::byte> received(1000);
  for (int step = 0;; ++step) {
    if (is_victim && step == 20) {
      if (dies) raise(SIGKILL);
      for (;;) pause();
    }
    communicator.Barrier();
    communicator.Broadcast(received, 0);
  }
}

int Run(int argc, char** argv) {
  CHECK(argc >= 3);
  const std::string mode = argv[2];
  // A hanging process must not outlive its test.
  alarm(100);
  const auto rendezvous = RendezvousFromEnvironment([](const char* name) { return getenv(name); });
  const char* timeout = getenv("TEST_TIMEOUT");
  auto communicator = MakeCommunicator(argv[1], rendezvous.value_or(Rendezvous{}),
                                       timeout != nullptr ? std::atof(timeout) : 30);
  if (mode == "conform") {
    CheckConformance(*communicator);
    std::printf("conforms %s\n", communicator->backend());
  } else if (mode == "reduce") {
    PrintReduction(*communicator);
  } else if (mode == "abandon") {
    CHECK(argc == 4);
    if (communicator->rank() == std::atoi(argv[3])) AbandonAnExchange(*communicator);
    SendTo(std::atoi(argv[3]), *communicator, size_t{64} << 20);
  } else if (mode == "stop") {
    CHECK(argc == 4);
    if (communicator->rank() == std::atoi(argv[3])) {
      StopWhileReceiving(*communicator);
    } else {
      usleep(200000);  // the other one has stopped
      SendTo(std::atoi(argv[3]), *communicator, kLastMessage);
      std::printf("sent\n");
      std::fflush(stdout);
    }
  } else {
    CHECK(argc == 4 && (mode == "die" || mode == "hang"));
    RunForever(*communicator, communicator->rank() == std::atoi(argv[3]), mode == "die");
  }
  return 0;
}

}  // namespace
}  // namespace renzan

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer's death is an Error
  try {
    return renzan::Run(argc, argv);
  } catch (const renzan::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_status();
  }
}
