#include "renzan/capi/comm.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/xxhash.h"
#include "renzan/capi/guard.h"
#include "renzan/capi/mpi_library.h"
#include "renzan/comm/backends.h"
#include "renzan/comm/rendezvous.h"
#include "renzan/comm/tree_blocks.h"

namespace renzan::capi {
namespace {

// Cheap to keep, since their arrays are only segments.
constexpr size_t kKeptReducers = 16;

Rendezvous RendezvousOf(const renzan_place& place) {
  Rendezvous rendezvous;
  rendezvous.rank = place.rank;
  rendezvous.world_size = place.world_size;
  rendezvous.local_rank = place.local_rank;
  rendezvous.master_addr.assign(place.master_addr,
                                strnlen(place.master_addr, sizeof(place.master_addr)));
  rendezvous.master_port = place.master_port;
  rendezvous.under_mpirun = place.under_mpirun != 0;
  if (place.world_size < 1 || place.rank < 0 || place.rank >= place.world_size)
    Fail(ErrorCode::kUsage, "there is no worker {} of {}", place.rank, place.world_size);
  return rendezvous;
}

// Gloo sets SIGPIPE to be ignored when it connects; the host program's disposition is restored.
class SameSigpipe {
 public:
  SameSigpipe() { sigaction(SIGPIPE, nullptr, &before_); }
  ~SameSigpipe() { sigaction(SIGPIPE, &before_, nullptr); }
  SameSigpipe(const SameSigpipe&) = delete;
  SameSigpipe& operator=(const SameSigpipe&) = delete;

 private:
  struct sigaction before_ = {};
};

}  // namespace

ElementType ElementOf(renzan_dtype dtype) {
  if (dtype < RENZAN_FLOAT32 || dtype > RENZAN_INT64)
    Fail(ErrorCode::kUsage, "{} is not a renzan_dtype", static_cast<int>(dtype));
  return static_cast<ElementType>(dtype);
}

ReduceOp OpOf(renzan_op op) {
  if (op < RENZAN_SUM || op > RENZAN_BIT_XOR)
    Fail(ErrorCode::kUsage, "{} is not a renzan_op", static_cast<int>(op));
  return static_cast<ReduceOp>(op);
}

void CheckOperation(ElementType element, ReduceOp op) {
  if (Combine(element, op) == nullptr)
    Fail(ErrorCode::kUsage, "there is no {} of {}: bitwise operations are for integers", Name(op),
         Name(element));
}

std::string Call::Describe() const {
  const char* const type = Name(static_cast<ElementType>(element));
  switch (kind) {
    case CallKind::kCreate:
      return "the creation of a communicator";
    case CallKind::kBarrier:
      return "barrier";
    case CallKind::kBroadcast:
      return fmt::format("broadcast of {} bytes from worker {}", count, root);
    case CallKind::kAllGather:
      return "all_gather";
    case CallKind::kAllToAll:
      return "all_to_all";
    case CallKind::kAllReduce:
      return fmt::format("all_reduce of {} {} ({})", count, type, Name(static_cast<ReduceOp>(op)));
    case CallKind::kReduceScatter:
      return fmt::format("reduce_scatter of {} {} ({})", count, type,
                         Name(static_cast<ReduceOp>(op)));
    case CallKind::kReduction:
      return fmt::format("a reduction of {} {} over {}, sent as {}", count, type,
                         Counted(virtual_workers, "virtual worker"),
                         Name(static_cast<ElementType>(op)));
    case CallKind::kStep:
      return fmt::format("training step {}", count);
  }
  return fmt::format("call {} (another version?)", static_cast<uint32_t>(kind));
}

}  // namespace renzan::capi

using namespace renzan;
using namespace renzan::capi;

renzan_comm::renzan_comm(std::unique_ptr<Communicator> c, int threads)
    : communicator(std::move(c)), pool(threads) {}

void renzan_comm::Agree(Call call, std::span<const size_t> sent, std::span<const size_t> expected) {
  const size_t world = world_size();
  for (size_t p = 0; p < expected.size(); ++p)
    if (p == rank() && sent[p] != expected[p])
      Fail(ErrorCode::kUsage, "{}: this worker sends itself {} bytes, but expects {}",
           call.Describe(), sent[p], expected[p]);
  if (world == 1) return;
  mine_.assign(world, call);
  theirs_.resize(world);
  std::vector<std::span<const std::byte>> from;
  std::vector<std::span<std::byte>> to;
  for (size_t p = 0; p < world; ++p) {
    if (!sent.empty()) mine_[p].sent = sent[p];
    from.push_back(std::as_bytes(std::span(mine_).subspan(p, 1)));
    to.push_back(std::as_writable_bytes(std::span(theirs_).subspan(p, 1)));
  }
  communicator->Wait(communicator->Post("agreement on the next call", from, to));
  for (size_t p = 0; p < world; ++p) {
    Call other = theirs_[p];
    const uint64_t incoming = std::exchange(other.sent, 0);
    if (std::memcmp(&other, &call, sizeof(Call)) != 0) {
      if (call.kind == CallKind::kCreate && other.kind == CallKind::kCreate)
        Fail(ErrorCode::kUsage, "worker {} runs a different version of Renzan than worker {} ({})",
             p, rank(), RENZAN_VERSION);
      const std::string here = call.Describe(), there = other.Describe();
      Fail(ErrorCode::kUsage,
           "worker {} calls {}, but worker {} {}{}: every worker must make the same calls in the "
           "same order",
           rank(), here, p, there, here == there ? " under another name" : "");
    }
    if (!expected.empty() && incoming != expected[p])
      Fail(ErrorCode::kUsage, "{}: worker {} sends {} bytes to worker {}, which expects {}",
           call.Describe(), p, incoming, rank(), expected[p]);
  }
}

TreeReducer& renzan_comm::Reducer(const ReduceFormat& format, size_t count, size_t lane) {
  ++uses_;
  for (Cached& cached : reducers_) {
    if (cached.format.element != format.element || cached.format.op != format.op ||
        cached.count != count || cached.lane != lane)
      continue;
    cached.last_use = uses_;
    return *cached.reducer;
  }
  if (reducers_.size() == kKeptReducers) {
    reducers_.erase(
        std::min_element(reducers_.begin(), reducers_.end(),
                         [](const Cached& a, const Cached& b) { return a.last_use < b.last_use; }));
  }
  reducers_.push_back(
      {format, count, lane, uses_,
       std::make_unique<TreeReducer>(*communicator, pool, communicator->world_size(), count, format,
                                     fmt::format("{} {}", count, Name(format.element)))});
  return *reducers_.back().reducer;
}

renzan_status renzan_place_from_environment(renzan_place* place) {
  return Guard([&] {
    NeedsArgument(place, "place");
    const Rendezvous found = RendezvousFromEnvironment([](const char* name) -> const char* {
                               return getenv(name);
                             }).value_or(Rendezvous{});
    *place = {};
    place->rank = found.rank;
    place->world_size = found.world_size;
    place->local_rank = found.local_rank;
    place->under_mpirun = found.under_mpirun ? 1 : 0;
    place->master_port = found.master_port;
    if (found.master_addr.size() >= sizeof(place->master_addr))
      Fail(ErrorCode::kUsage, "MASTER_ADDR is too long: {} characters", found.master_addr.size());
    std::memcpy(place->master_addr, found.master_addr.data(), found.master_addr.size());
  });
}

renzan_status renzan_comm_create(const renzan_place* place, const char* backend,
                                 double timeout_seconds, int threads, renzan_comm** comm) {
  return Guard([&] {
    NeedsArgument(place, "place");
    NeedsArgument(backend, "backend");
    NeedsArgument(comm, "comm");
    if (threads < 1)
      Fail(ErrorCode::kUsage, "{}: at least one is needed", Counted(threads, "thread"));
    if (!(timeout_seconds > 0 && timeout_seconds <= 1e6))
      Fail(ErrorCode::kUsage, "a time limit of {} s: use more than 0 and at most 1e6",
           timeout_seconds);
    Rendezvous rendezvous = RendezvousOf(*place);
    const SameSigpipe same_sigpipe;
    if (const char* interface = getenv("GLOO_SOCKET_IFNAME"))
      rendezvous.network_interface = interface;
    auto made = std::make_unique<renzan_comm>(
        MakeCommunicator(backend, rendezvous, timeout_seconds, MakeMpiCommunicatorFromLibrary),
        threads);
    // Workers of different versions would misread each other's messages.
    Call call{.kind = CallKind::kCreate};
    call.name = Xxh3OfBlock(RENZAN_VERSION, sizeof(RENZAN_VERSION));
    made->Agree(call);
    *comm = made.release();
  });
}

void renzan_comm_destroy(renzan_comm* comm) {
  Guard([&] { delete comm; });
}

int renzan_comm_rank(const renzan_comm* comm) { return comm->communicator->rank(); }
int renzan_comm_world_size(const renzan_comm* comm) { return comm->communicator->world_size(); }
const char* renzan_comm_backend(const renzan_comm* comm) { return comm->communicator->backend(); }
