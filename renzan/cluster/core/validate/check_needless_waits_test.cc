#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/cluster/core/testing/validator_testing.h"

namespace renzan::cluster {
namespace {

// Queue c, which is guaranteed nothing, has one of two nodes. A job of b starts on the other, where
// a gang of a has room no more; nor has a smaller job of a, unless it stops the one of c.
TEST_F(Validator, AJobThatLosesItsRoomInThisCycleMayHaveClaimedTheGuarantee) {
  snapshot.nodes.resize(2);
  snapshot.pools[0].min_nodes = snapshot.pools[0].max_nodes = 2;
  snapshot.queues[0].guaranteed[kGpu] = 16;
  snapshot.queues.push_back({.name = "c"});
  const JobId gang = Add(0, 8, 2).id, small = Add(0, 4).id, other = Add(1, 5).id;
  AddRunning(2, 8, {{1, 1}});
  decisions.starts = {{other, {{0, 1}}}};
  decisions.waits = {{gang, WaitReason::kUserCap}, {small, WaitReason::kResources}};
  ExpectClean();
  // One that never had any claims nothing.
  SetRequest(snapshot.jobs[0], {.per_worker = Gpus(8), .required = {{"gpu_model", "none"}}});
  ExpectFault("job 2 waits (resources), although it has a right to room that there is");
}

}  // namespace
}  // namespace renzan::cluster
