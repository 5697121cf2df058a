#pragma once

// The sum of one array per virtual worker, in the order of a fixed balanced binary tree,
// independent of the number of workers, the number of threads and the backend:
//
//   leaf(v)     = round(array of virtual worker v)
//   node(l, r)  = round(l + r)
//   sum         = the root over V leaves
//
// where round is the wire codec (the identity for float32), also for values that never leave a
// worker. If V is not a power of two, the tree is the next larger one without the leaves that do
// not exist. Arrays of other types, and other operations than the sum, have no wire codec.
//
// Each worker reduces the largest aligned subtrees of its virtual workers. The partial sums are
// exchanged slice by slice (all-to-all), added in tree order by the slice's worker, and the sums
// are gathered: every worker sends about 2 * length values, a little more if W does not divide V.
// Small arrays are sent to all workers as they are, in one exchange; the additions are the same.
//
// Only one thread at a time may use a TreeReducer, and every worker calls Reduce() in the same
// order.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/communicator.h"
#include "renzan/comm/reduce_op.h"
#include "renzan/comm/tree_blocks.h"
#include "renzan/tensor/float_codec.h"

namespace renzan {

struct ReduceFormat {
  ElementType element = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // Only sums of float32 may use a type other than kFloat32.
  FloatType wire = FloatType::kFloat32;
};

class TreeReducer {
 public:
  // Arrays of `length` values; `what` names them in error messages. All references must outlive
  // this object.
  TreeReducer(Communicator& communicator, ThreadPool& pool, int num_virtual_workers, size_t length,
              const ReduceFormat& format, const std::string& what);
  TreeReducer(Communicator& communicator, ThreadPool& pool, int num_virtual_workers, size_t length,
              FloatType wire, const std::string& what = "dense gradients")
      : TreeReducer(communicator, pool, num_virtual_workers, length, ReduceFormat{.wire = wire},
                    what) {}
  ~TreeReducer();

  // Memory that a large reducer takes on worker `rank` of `world_size`, in bytes.
  static int64_t MemoryFor(int num_virtual_workers, int world_size, int rank, int64_t length,
                           FloatType wire);

  // `leaves`: one [length] array per virtual worker assigned to this worker (VirtualWorkerRange),
  // in order; overwritten. `sum` [length]: the same on every worker; may not overlap the leaves.
  // Both must stay until Finish() returns.
  void Start(std::span<const std::span<float>> leaves, std::span<float> sum);
  // The same when this worker's leaves have been reduced already (StreamingTree), or are one each:
  // one array per block of MaximalBlocks(), of `length` elements. They are not changed, but `sum`
  // may be the first of them; in a world of one, the last.
  void StartBlocks(std::span<const std::byte* const> blocks, std::byte* sum);
  // Every worker calls Continue() and then Finish(), and may do other work in between.
  void Continue();
  void Finish();

  // Start(), Continue() and Finish() in one call.
  void Reduce(std::span<const std::span<float>> leaves, std::span<float> sum) {
    Start(leaves, sum);
    Continue();
    Finish();
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace renzan
