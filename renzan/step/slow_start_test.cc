// One worker takes longer to start than the other. C library calls that begin long work (opening a
// data file, allocating a table) block on worker 1 until worker 0 has completed a few exchanges,
// which shows that worker 0 does not wait in a single exchange all that time.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>

#include "renzan/base/file/file.h"
#include "renzan/comm/heartbeat.h"
#include "renzan/comm/testing.h"
#include "renzan/data/dataset/dataset_writer.h"
#include "renzan/run/run.h"
#include "renzan/run/splits.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

// Set while a test runs.
std::atomic<bool> slow = false;
std::atomic<int> exchanges_of_worker_0 = 0;
std::atomic<int> waits = 0, timeouts = 0;

// Blocks until worker 0 has completed a few exchanges. Times out if there are none, so that the
// test fails instead of hanging.
void BlockForAWhile() {
  ++waits;
  const int before = exchanges_of_worker_0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (exchanges_of_worker_0 < before + 3) {
    if (std::chrono::steady_clock::now() > end) {
      ++timeouts;
      return;
    }
    std::this_thread::yield();
  }
}

// Counts finished exchanges.
class CountingCommunicator : public Communicator {
 public:
  CountingCommunicator(Communicator& inner, std::atomic<int>& count)
      : inner_(inner), count_(count) {}

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  const char* backend() const override { return inner_.backend(); }
  Ticket Post(const char* operation, std::span<const std::span<const std::byte>> send,
              std::span<const std::span<std::byte>> recv) override {
    return inner_.Post(operation, send, recv);
  }
  void Wait(Ticket ticket) override {
    inner_.Wait(ticket);
    ++count_;
  }
  void Abandon() noexcept override { inner_.Abandon(); }
  void Broadcast(std::span<std::byte> data, int root) override {
    inner_.Broadcast(data, root);
    ++count_;
  }

 private:
  Communicator& inner_;
  std::atomic<int>& count_;
};

// Two workers, of which worker 1 is slow.
void RunTwo(const std::function<void(Communicator&)>& body) {
  exchanges_of_worker_0 = waits = timeouts = 0;
  slow = true;
  RunRanksAsThreads(2, [&](Communicator& inner) {
    std::atomic<int> ignored = 0;
    CountingCommunicator comm(inner, inner.rank() == 0 ? exchanges_of_worker_0 : ignored);
    body(comm);
  });
  slow = false;
  EXPECT_GT(waits, 0) << "no call was slow";
  EXPECT_EQ(timeouts, 0) << "worker 0 did not keep exchanging";
}

// The large table belongs to worker 1, the small one to worker 0.
constexpr int64_t kSlowRows = 77'777, kDim = 8;
constexpr size_t kSlowBytes = size_t{kSlowRows} * kDim * sizeof(float);
constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kSlowAllocation = (kSlowBytes + kHugePage - 1) / kHugePage * kHugePage;

void WriteDataset(const std::string& path) {
  const DatasetSchema schema = {
      .label = "label", .dense = {"d"}, .categorical = {{"first", 100}, {"second", kSlowRows}}};
  DatasetWriter writer(path, schema, {.created_by = "test"});
  for (int row = 0; row < 256; ++row) {
    const float dense[] = {static_cast<float>(row % 7)};
    const int64_t ids[] = {row % 100, row * 31};
    writer.Append(static_cast<float>(row % 2), dense, ids, {});
  }
  writer.Finish();
}

TEST(SlowStart, TheOtherWorkersKeepExchanging) {
  RunTwo([](Communicator& comm) {
    RunWithHeartbeats(comm, [&] {
      if (comm.rank() == 1) BlockForAWhile();
    });
  });
}

TEST(SlowStart, OnlyTheFailingWorkerGetsItsError) {
  RunTwo([](Communicator& comm) {
    const std::optional<Error> error = TryWithHeartbeats(comm, [&] {
      if (comm.rank() == 0) return;
      BlockForAWhile();
      Fail(ErrorCode::kData, "a wrong checksum");
    });
    EXPECT_EQ(error.has_value(), comm.rank() == 1);
    comm.Barrier();
  });
}

TEST(SlowStart, OpeningAndVerifyingData) {
  TemporaryDirectory dir;
  WriteDataset(dir / "quick");
  WriteDataset(dir / "slow");
  RunTwo([&](Communicator& comm) {
    DataConfig config;
    config.train.path = dir / (comm.rank() == 1 ? "slow" : "quick");
    config.verify = true;
    OpenSplits(config, {}, comm);
  });
  EXPECT_GT(waits, 1) << "opening and verifying should both be slow";
}

TEST(SlowStart, TakingMemoryOfTables) {
  TemporaryDirectory dir;
  WriteDataset(dir / "data");
  TrainConfig config = SmallConfig();
  config.model.tables.clear();
  config.model.embedding_dim = kDim;
  config.data.train.path = dir / "data";
  config.run_dir = dir / "run";
  RunRequests requests;
  RunTwo([&](Communicator& comm) {
    const RunResult result =
        RunTraining(config, {.requests = &requests, .clock = &SystemClock()}, comm);
    EXPECT_EQ(result.end, RunResult::End::kTrained);
  });
}

}  // namespace
}  // namespace renzan

// Replace the C library's functions.
extern "C" int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const std::string_view name(path);
  if (renzan::slow && name.find("/slow/") != std::string_view::npos && name.ends_with("label.npy"))
    renzan::BlockForAWhile();
  return ::openat(AT_FDCWD, path, flags, mode);
}

extern "C" int madvise(void* memory, size_t size, int advice) noexcept {
  if (renzan::slow && size == renzan::kSlowAllocation) renzan::BlockForAWhile();
  return static_cast<int>(::syscall(SYS_madvise, memory, size, advice));
}
