#include <algorithm>
#include <array>
#include <cstring>

#include "renzan/base/error.h"
#include "renzan/capi/comm.h"
#include "renzan/capi/guard.h"
#include "renzan/comm/tree_blocks.h"

using namespace renzan;
using namespace renzan::capi;

namespace {

using Parts = std::vector<std::span<const std::byte>>;
using MutableParts = std::vector<std::span<std::byte>>;

const std::byte* Bytes(const void* data) { return static_cast<const std::byte*>(data); }
std::byte* Bytes(void* data) { return static_cast<std::byte*>(data); }

// The segments in which an array is reduced: parts of this size per worker hide a network's
// latency.
size_t SegmentBytes(size_t world_size) {
  constexpr size_t kSliceBytes = size_t{512} << 10, kMost = size_t{8} << 20;
  return std::min(world_size * kSliceBytes, kMost);
}

// Carries out one call on a communicator.
template <class Body>
renzan_status OnComm(renzan_comm* comm, const Body& body) {
  return Guard([&] {
    NeedsArgument(comm, "comm");
    const std::lock_guard lock(comm->mutex);
    body();
  });
}

MutableParts ReceivedParts(const renzan_comm& comm, void* const* recv, const size_t* recv_bytes) {
  NeedsArgument(recv, "recv");
  NeedsArgument(recv_bytes, "recv_bytes");
  MutableParts parts;
  for (size_t p = 0; p < comm.world_size(); ++p) {
    if (recv_bytes[p] > 0) NeedsArgument(recv[p], "recv[p]");
    parts.emplace_back(Bytes(recv[p]), recv_bytes[p]);
  }
  return parts;
}

// Segment by segment, three of them in flight: one is scattered, one combined and one gathered. The
// buffers of a segment stay in the cache, and arrays of any size share them.
void AllReduce(renzan_comm& comm, const ReduceFormat& format, const std::byte* send,
               std::byte* recv, size_t count) {
  constexpr size_t kUnderWay = 3;
  const size_t bytes = BytesOf(format.element), segment = SegmentBytes(comm.world_size()) / bytes;
  const size_t num_segments = (count + segment - 1) / segment;
  std::array<TreeReducer*, kUnderWay> reducers;
  const auto start = [&](size_t i) {
    const size_t begin = i * segment, size = std::min(segment, count - begin);
    TreeReducer*& reducer = reducers[i % kUnderWay];
    reducer = &comm.Reducer(format, size, i % kUnderWay);
    const std::byte* const block = send + begin * bytes;
    reducer->StartBlocks({&block, 1}, recv + begin * bytes);
  };
  for (size_t i = 0; i < std::min(kUnderWay - 1, num_segments); ++i) start(i);
  for (size_t i = 0; i < num_segments; ++i) {
    reducers[i % kUnderWay]->Continue();
    if (i > 0) reducers[(i - 1) % kUnderWay]->Finish();
    if (i + kUnderWay - 1 < num_segments) start(i + kUnderWay - 1);
  }
  if (num_segments > 0) reducers[(num_segments - 1) % kUnderWay]->Finish();
}

}  // namespace

renzan_status renzan_barrier(renzan_comm* comm) {
  return OnComm(comm, [&] { comm->Agree({.kind = CallKind::kBarrier}); });
}

renzan_status renzan_begin_step(renzan_comm* comm, uint64_t step) {
  return OnComm(comm, [&] { comm->Agree({.kind = CallKind::kStep, .count = step}); });
}

renzan_status renzan_broadcast(renzan_comm* comm, void* data, size_t bytes, int root) {
  return OnComm(comm, [&] {
    if (bytes > 0) NeedsArgument(data, "data");
    if (root < 0 || root >= comm->communicator->world_size())
      Fail(ErrorCode::kUsage, "broadcast from worker {}, but there are only {}", root,
           comm->communicator->world_size());
    comm->Agree(
        {.kind = CallKind::kBroadcast, .root = static_cast<uint32_t>(root), .count = bytes});
    comm->communicator->Broadcast({Bytes(data), bytes}, root);
  });
}

renzan_status renzan_all_gather(renzan_comm* comm, const void* send, size_t send_bytes,
                                void* const* recv, const size_t* recv_bytes) {
  return OnComm(comm, [&] {
    if (send_bytes > 0) NeedsArgument(send, "send");
    const MutableParts parts = ReceivedParts(*comm, recv, recv_bytes);
    comm->Agree({.kind = CallKind::kAllGather}, std::vector(comm->world_size(), send_bytes),
                {recv_bytes, comm->world_size()});
    comm->communicator->AllGatherV({Bytes(send), send_bytes}, parts);
  });
}

renzan_status renzan_all_to_all(renzan_comm* comm, const void* const* send,
                                const size_t* send_bytes, void* const* recv,
                                const size_t* recv_bytes) {
  return OnComm(comm, [&] {
    NeedsArgument(send, "send");
    NeedsArgument(send_bytes, "send_bytes");
    Parts from;
    for (size_t p = 0; p < comm->world_size(); ++p) {
      if (send_bytes[p] > 0) NeedsArgument(send[p], "send[p]");
      from.emplace_back(Bytes(send[p]), send_bytes[p]);
    }
    const MutableParts to = ReceivedParts(*comm, recv, recv_bytes);
    comm->Agree({.kind = CallKind::kAllToAll}, {send_bytes, comm->world_size()},
                {recv_bytes, comm->world_size()});
    comm->communicator->AllToAllV(from, to);
  });
}

renzan_status renzan_all_reduce(renzan_comm* comm, const void* send, void* recv, size_t count,
                                renzan_dtype dtype, renzan_op op) {
  return OnComm(comm, [&] {
    const ReduceFormat format = {ElementOf(dtype), OpOf(op)};
    CheckOperation(format.element, format.op);
    if (count > 0) NeedsArgument(send, "send");
    if (count > 0) NeedsArgument(recv, "recv");
    comm->Agree({.kind = CallKind::kAllReduce,
                 .element = static_cast<uint32_t>(format.element),
                 .op = static_cast<uint32_t>(format.op),
                 .count = count});
    AllReduce(*comm, format, Bytes(send), Bytes(recv), count);
  });
}

renzan_status renzan_reduce_scatter(renzan_comm* comm, const void* send, void* recv,
                                    const size_t* counts, renzan_dtype dtype, renzan_op op) {
  return OnComm(comm, [&] {
    const ElementType element = ElementOf(dtype);
    CheckOperation(element, OpOf(op));
    NeedsArgument(counts, "counts");
    const size_t bytes = BytesOf(element), world = comm->world_size(), rank = comm->rank();
    std::vector<size_t> sent, expected(world, counts[rank] * bytes);
    std::vector<std::vector<std::byte>> received(world);
    Parts from;
    MutableParts to;
    size_t total = 0;
    for (size_t p = 0; p < world; ++p) {
      sent.push_back(counts[p] * bytes);
      from.emplace_back(Bytes(send) + total * bytes, sent[p]);
      received[p].resize(expected[p]);
      to.emplace_back(received[p]);
      total += counts[p];
    }
    if (total > 0) NeedsArgument(send, "send");
    if (counts[rank] > 0) NeedsArgument(recv, "recv");
    comm->Agree({.kind = CallKind::kReduceScatter,
                 .element = static_cast<uint32_t>(element),
                 .op = static_cast<uint32_t>(op),
                 .count = total},
                sent, expected);
    comm->communicator->AllToAllV(from, to);
    const CombineFunction combine = Combine(element, OpOf(op));
    const IndexRange ranks = {0, static_cast<int>(world)};
    std::vector<TreeBlock> leaves;
    for (int p = ranks.begin; p < ranks.end; ++p) leaves.push_back({p, 1});
    for (const auto& [sum, term] : TreeAdditions(leaves))
      combine(received[sum].data(), received[term].data(), counts[rank]);
    if (counts[rank] > 0) std::memcpy(recv, received[0].data(), received[0].size());
  });
}
