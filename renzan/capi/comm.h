#pragma once

// renzan_comm: a communicator that carries out one call at a time and detects workers that
// disagree.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/capi/renzan.h"
#include "renzan/comm/communicator.h"
#include "renzan/comm/tree_reduce.h"

namespace renzan::capi {

ElementType ElementOf(renzan_dtype dtype);
ReduceOp OpOf(renzan_op op);
// Throws an Error (kUsage) if there is no such operation on that type.
void CheckOperation(ElementType element, ReduceOp op);

enum class CallKind : uint32_t {
  kCreate,
  kBarrier,
  kBroadcast,
  kAllGather,
  kAllToAll,
  kAllReduce,
  kReduceScatter,
  kReduction,
  kStep,
};

// The call that a worker makes, sent to all others first. Its layout is fixed.
struct Call {
  CallKind kind = CallKind::kBarrier;
  uint32_t element = 0, op = 0, root = 0;  // or the wire type, of a reduction
  uint64_t count = 0;                      // elements, bytes, or a step's number
  uint64_t virtual_workers = 0;
  uint64_t name = 0;  // a hash
  uint64_t sent = 0;  // bytes to the receiver of this message

  // "all_reduce of 10 float32 (sum)"
  std::string Describe() const;
};

}  // namespace renzan::capi

struct renzan_comm {
  std::mutex mutex;
  std::unique_ptr<renzan::Communicator> communicator;
  renzan::ThreadPool pool;

  renzan_comm(std::unique_ptr<renzan::Communicator> c, int threads);

  size_t world_size() const { return static_cast<size_t>(communicator->world_size()); }
  size_t rank() const { return static_cast<size_t>(communicator->rank()); }

  // Throws an Error (kUsage) if another worker makes another call, or sends this one a number of
  // bytes other than `expected`. Both are empty, or one number per worker.
  void Agree(renzan::capi::Call call, std::span<const size_t> sent = {},
             std::span<const size_t> expected = {});

  // A reducer of one array per worker, kept for the next call like this one. Reducers of different
  // `lane` may be in flight together.
  renzan::TreeReducer& Reducer(const renzan::ReduceFormat& format, size_t count, size_t lane);

 private:
  struct Cached {
    renzan::ReduceFormat format;
    size_t count = 0, lane = 0;
    uint64_t last_use = 0;
    std::unique_ptr<renzan::TreeReducer> reducer;
  };
  std::vector<Cached> reducers_;
  uint64_t uses_ = 0;
  std::vector<renzan::capi::Call> mine_, theirs_;
};
