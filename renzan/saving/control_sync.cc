#include "renzan/saving/control_sync.h"

#include <vector>

#include "renzan/comm/gather.h"

namespace renzan {

ControlSyncResult ControlSync(Communicator& comm, const ControlSyncInput& mine) {
  const std::vector<ControlSyncInput> answers = AllGatherValues(comm, mine);
  ControlSyncResult result{.checkpoint_due = answers[0].checkpoint_due,
                           .rank0_finished = answers[0].task_finished,
                           .calls_to_next = answers[0].calls_to_next};
  std::vector<Finiteness> finiteness;
  for (const ControlSyncInput& answer : answers) {
    result.stops += answer.stops;
    result.any_checkpoint = result.any_checkpoint || answer.checkpoint;
    result.all_finished = result.all_finished && answer.task_finished;
    result.any_copies_full = result.any_copies_full || answer.copies_full;
    finiteness.push_back(answer.finiteness);
  }
  result.finiteness = Merge(finiteness);
  return result;
}

}  // namespace renzan
