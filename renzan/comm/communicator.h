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

namespace renzan {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  // "local", "gloo" or "mpi"
  virtual const char* backend() const = 0;

  // send[p] goes to rank p, recv[p] is filled by rank p; both are [world_size]. The receiver knows
  // the sizes. Buffers must not overlap. A part for this rank itself is copied.
  virtual void AllToAllV(std::span<const std::span<const std::byte>> send,
                         std::span<const std::span<std::byte>> recv) = 0;

  // `send` goes to everyone; recv[p] is filled by rank p, recv[rank()] by `send`.
  virtual void AllGatherV(std::span<const std::byte> send,
                          std::span<const std::span<std::byte>> recv) = 0;

  virtual void Broadcast(std::span<std::byte> data, int root) = 0;

  virtual void Barrier() = 0;
};

}  // namespace renzan
