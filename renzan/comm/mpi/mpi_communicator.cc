// MPI through its C interface. Operations use non-blocking messages polled against a deadline,
// because MPI's collectives cannot be cancelled. Open MPI polls anyway; yielding the CPU between
// polls lets more workers than cores make progress.

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/backends.h"

namespace renzan {
namespace {

using std::chrono::steady_clock;

// MPI counts are ints: larger parts are sent as several messages, which arrive in order.
constexpr size_t kMaxMessageBytes = size_t{1} << 30;

constexpr int kPollsBeforeYield = 64;

void Check(int result, const char* operation) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  Fail(ErrorCode::kUnavailable, "{}: {}", operation, text);
}

// MPI's lifetime in this process: initialised by the first communicator unless the program has done
// so, and then ended with the last one. It can be initialised only once.
class Mpi {
 public:
  static Mpi& Get() {
    static Mpi mpi;
    return mpi;
  }

  void Enter() {
    const std::lock_guard lock(mutex_);
    int initialized = 0, finalized = 0, provided = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (finalized)
      Fail(ErrorCode::kUsage,
           "MPI has ended in this process, and cannot begin again: keep one communicator until the "
           "end");
    if (initialized) {
      MPI_Query_thread(&provided);
    } else {
      Check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
      ours_ = true;
    }
    // Only one thread calls at a time, but not always the same one.
    if (provided < MPI_THREAD_SERIALIZED)
      Fail(ErrorCode::kUnavailable,
           "this MPI has no thread support (MPI_THREAD_SERIALIZED): use backend gloo");
    ++communicators_;
  }

  // MPI_Finalize waits for all workers, so it may only be called after success. If a process ends
  // without it, mpirun ends the others.
  void Leave(bool failed) {
    const std::lock_guard lock(mutex_);
    failed_ = failed_ || failed;
    if (--communicators_ == 0 && ours_ && !failed_) MPI_Finalize();
  }

 private:
  std::mutex mutex_;
  int communicators_ = 0;
  bool ours_ = false, failed_ = false;
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(const Rendezvous& rendezvous, double timeout_seconds)
      : timeout_seconds_(timeout_seconds) {
    Mpi::Get().Enter();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size_);
    if (rank_ != rendezvous.rank || world_size_ != rendezvous.world_size) {
      Mpi::Get().Leave(true);
      Fail(ErrorCode::kUsage,
           "MPI reports worker {} of {}, the environment {} of {}: start the workers with mpirun "
           "(mpirun -n {} PROGRAM ...) or use backend gloo",
           rank_, world_size_, rendezvous.rank, rendezvous.world_size, rendezvous.world_size);
    }
    // Keeps messages of several communicators, and of the program itself, apart.
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }

  ~MpiCommunicator() override {
    const bool failed = failed_ || std::uncaught_exceptions() > 0;
    if (!failed) MPI_Comm_free(&comm_);
    Mpi::Get().Leave(failed);
  }

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  const char* backend() const override { return "mpi"; }

  Ticket Post(const char* operation, std::span<const std::span<const std::byte>> send,
              std::span<const std::span<std::byte>> recv) override {
    CHECK(send.size() == Size() && recv.size() == Size());
    const Ticket ticket = Begin(operation);
    Messages& messages = in_flight_[ticket];
    for (size_t distance = 1; distance < Size(); ++distance) {
      const size_t p = (static_cast<size_t>(rank_) + Size() - distance) % Size();
      const std::span<std::byte> part = recv[p];
      for (size_t begin = 0; begin < part.size(); begin += kMaxMessageBytes) {
        const size_t bytes = std::min(kMaxMessageBytes, part.size() - begin);
        Check(MPI_Irecv(part.data() + begin, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(p),
                        0, comm_, messages.Add(static_cast<int>(p))),
              operation);
      }
    }
    for (size_t distance = 1; distance < Size(); ++distance) {
      const size_t p = (static_cast<size_t>(rank_) + distance) % Size();
      const std::span<const std::byte> part = send[p];
      for (size_t begin = 0; begin < part.size(); begin += kMaxMessageBytes) {
        const size_t bytes = std::min(kMaxMessageBytes, part.size() - begin);
        Check(MPI_Isend(part.data() + begin, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(p),
                        0, comm_, messages.Add(static_cast<int>(p))),
              operation);
      }
    }
    const size_t me = static_cast<size_t>(rank_);
    std::copy(send[me].begin(), send[me].end(), recv[me].begin());
    return ticket;
  }

  void Wait(Ticket ticket) override {
    Finish(in_flight_[ticket]);
    in_flight_[ticket].Clear();
  }

  // Messages make progress only in MPI's own functions.
  void Abandon() noexcept override { failed_ = true; }

  void Broadcast(std::span<std::byte> data, int root) override {
    const Ticket ticket = Begin("Broadcast");
    for (size_t begin = 0; begin < data.size(); begin += kMaxMessageBytes) {
      const size_t bytes = std::min(kMaxMessageBytes, data.size() - begin);
      Check(MPI_Ibcast(data.data() + begin, static_cast<int>(bytes), MPI_BYTE, root, comm_,
                       in_flight_[ticket].Add(root)),
            "Broadcast");
    }
    Wait(ticket);
  }

 private:
  // Requests in flight and the peer of each.
  struct Messages {
    std::vector<MPI_Request> requests;
    std::vector<int> peers;
    const char* operation = nullptr;  // null: free

    void Clear() {
      requests.clear();
      peers.clear();
      operation = nullptr;
    }
    MPI_Request* Add(int peer) {
      requests.push_back(MPI_REQUEST_NULL);
      peers.push_back(peer);
      return &requests.back();
    }
  };

  size_t Size() const { return static_cast<size_t>(world_size_); }

  Ticket Begin(const char* operation) {
    const auto free = std::find_if(in_flight_.begin(), in_flight_.end(),
                                   [](const Messages& m) { return m.operation == nullptr; });
    const Ticket ticket = static_cast<Ticket>(free - in_flight_.begin());
    if (free == in_flight_.end()) in_flight_.emplace_back();
    in_flight_[ticket].operation = operation;
    return ticket;
  }

  void Finish(Messages& messages) {
    const char* const operation = messages.operation;
    const auto deadline = steady_clock::now() + std::chrono::duration<double>(timeout_seconds_);
    for (int polls = 0;; ++polls) {
      int done = 0;
      const int result = MPI_Testall(static_cast<int>(messages.requests.size()),
                                     messages.requests.data(), &done, MPI_STATUSES_IGNORE);
      if (result != MPI_SUCCESS) failed_ = true;
      Check(result, operation);
      if (done) return;
      if (polls < kPollsBeforeYield) continue;
      sched_yield();
      if (steady_clock::now() < deadline) continue;
      const int missing = Unfinished(messages);
      if (missing < 0) return;
      failed_ = true;
      Fail(ErrorCode::kUnavailable,
           "{}: no answer from worker {} within {:.0f} s: the worker or the network hangs",
           operation, missing, timeout_seconds_);
    }
  }

  // The peer of the first unfinished message; -1 if all have finished after all.
  static int Unfinished(Messages& messages) {
    for (size_t i = 0; i < messages.requests.size(); ++i) {
      int done = 0;
      MPI_Test(&messages.requests[i], &done, MPI_STATUS_IGNORE);
      if (!done) return messages.peers[i];
    }
    return -1;
  }

  double timeout_seconds_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, world_size_ = 0;
  std::vector<Messages> in_flight_;  // by ticket
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Communicator> MakeMpiCommunicator(const Rendezvous& rendezvous,
                                                  double timeout_seconds) {
  return std::make_unique<MpiCommunicator>(rendezvous, timeout_seconds);
}

}  // namespace renzan
