#pragma once

// The sum of one array per virtual worker, in the order of one fixed balanced binary tree, whatever
// the number of workers, threads and the backend:
//
//   leaf(v)     = round(array of virtual worker v)
//   node(l, r)  = round(l + r)
//   sum         = the root over V leaves, V a power of two
//
// where round is the wire codec (nothing for float32), also for what never leaves a worker.
//
// Each worker reduces the largest aligned subtrees it carries. The remaining partial sums are
// exchanged slice by slice (all-to-all), added in tree order by the slice's worker, and the sums
// gathered: every worker sends about 2 * length values, or a little more where W divides V
// unevenly.
//
// One TreeReducer belongs to one thread at a time, and every worker calls Reduce() in the same
// order.

#include <cstddef>
#include <memory>
#include <span>

#include "renzan/base/thread_pool.h"
#include "renzan/comm/codec.h"
#include "renzan/comm/communicator.h"

namespace renzan {

class TreeReducer {
 public:
  // Arrays of `length` values. All references must outlive this object.
  TreeReducer(Communicator& communicator, ThreadPool& pool, int num_virtual_workers, size_t length,
              WireType wire);
  ~TreeReducer();

  // `leaves`: one [length] array per virtual worker of this worker (VirtualWorkerRange), in order;
  // destroyed. `sum` [length]: the same on every worker; may not overlap the leaves.
  void Reduce(std::span<const std::span<float>> leaves, std::span<float> sum);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace renzan
