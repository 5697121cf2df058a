#pragma once

// A group of workers that exchange bytes. Tree reductions and exchanges of tensors are built on
// these few operations in a fixed order, so that no backend's own reduction order can affect the
// arithmetic.
//
// Only one thread at a time may use a Communicator. Every rank must call the same operations in the
// same order. If a peer dies or does not answer within the deadline, the call throws an Error
// (kUnavailable) that names the operation and, if the backend knows it, the peer; the communicator
// cannot be used afterwards.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace renzan {

class Communicator {
 public:
  // An exchange that was posted. Tickets are reused.
  using Ticket = size_t;

  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // "local", "gloo" or "mpi"
  virtual const char* backend() const = 0;

  // This worker's rank among those of its machine, once FindLocalRank() has determined it; else 0.
  int local_rank() const { return local_rank_; }
  void set_local_rank(int local_rank) { local_rank_ = local_rank; }

  // Starts to send send[p] to rank p and to fill recv[p] from rank p; both are [world_size]. The
  // receiver knows the sizes. A part for this rank itself is copied. Until Wait() returns, the
  // parts must stay valid; nobody may change those that are sent or use those that are received.
  // They must not overlap. Several exchanges may be in flight. `operation` names this one in errors
  // and must outlive it.
  virtual Ticket Post(const char* operation, std::span<const std::span<const std::byte>> send,
                      std::span<const std::span<std::byte>> recv) = 0;
  // Returns when the exchange has ended here. The deadline counts from this call.
  virtual void Wait(Ticket ticket) = 0;

  // Gives up all exchanges in flight: once it returns, nothing uses their parts. The communicator
  // cannot be used afterwards.
  virtual void Abandon() noexcept = 0;

  virtual void Broadcast(std::span<std::byte> data, int root) = 0;

  // Post and Wait.
  void AllToAllV(std::span<const std::span<const std::byte>> send,
                 std::span<const std::span<std::byte>> recv);
  // `send` goes to everyone; recv[p] is filled by rank p, recv[rank()] by `send`.
  void AllGatherV(std::span<const std::byte> send, std::span<const std::span<std::byte>> recv);
  // Returns once all ranks have called it.
  void Barrier();

 private:
  int local_rank_ = 0;
  // Parts of AllGatherV() and Barrier(), kept so that these do not allocate.
  std::vector<std::span<const std::byte>> same_;
  std::vector<std::byte> here_;
  std::vector<std::span<std::byte>> here_parts_;
};

// One exchange at a time between fixed buffers, which must outlive it. If an error destroys its
// owner while it is in flight, the communicator is abandoned.
class Exchange {
 public:
  explicit Exchange(Communicator& comm) : comm_(comm) {}
  ~Exchange() {
    if (in_flight_) comm_.Abandon();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void Post(const char* operation, std::span<const std::span<const std::byte>> send,
            std::span<const std::span<std::byte>> recv);
  void Wait();
  bool in_flight() const { return in_flight_; }

 private:
  Communicator& comm_;
  Communicator::Ticket ticket_ = 0;
  bool in_flight_ = false;
};

}  // namespace renzan
