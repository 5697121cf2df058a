#include "renzan/comm/heartbeat.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "renzan/base/background_task.h"
#include "renzan/comm/gather.h"

namespace renzan {

std::optional<Error> TryWithHeartbeats(Communicator& comm, std::function<void()> work) {
  constexpr double kSeconds = 0.05;
  BackgroundTask task;
  task.Start(std::move(work));
  for (bool all_done = false; !all_done;) {
    task.WaitFor(kSeconds);
    const std::vector<char> done = AllGatherValues<char>(comm, task.finished() ? 1 : 0);
    all_done = std::find(done.begin(), done.end(), 0) == done.end();
  }
  return task.error();
}

void RunWithHeartbeats(Communicator& comm, std::function<void()> work) {
  if (const std::optional<Error> error = TryWithHeartbeats(comm, std::move(work))) throw *error;
}

}  // namespace renzan
