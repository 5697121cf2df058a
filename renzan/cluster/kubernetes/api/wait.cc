#include "renzan/cluster/kubernetes/api/wait.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace renzan::cluster::kubernetes {

void WaitFor(double seconds, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  never.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
}

}  // namespace renzan::cluster::kubernetes
