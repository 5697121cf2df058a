#include "renzan/cluster/kubernetes/process/lease_keeper.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/api/wait.h"

namespace renzan::cluster::kubernetes {

LeaseKeeper::LeaseKeeper(LeaseOptions options, const ApiFactory& make_api,
                         std::function<void()> on_change, const Clock& clock)
    : retry_seconds_(options.retry_seconds),
      on_change_(std::move(on_change)),
      clock_(clock),
      // This Api cannot be stopped: the Lease is released at the end.
      api_(make_api({})),
      lease_(std::move(options), *api_, clock),
      thread_([this](const std::stop_token& stop) { Keep(stop); }) {}

LeaseKeeper::~LeaseKeeper() {
  thread_.request_stop();
  thread_.join();
  try {
    lease_.Release();
  } catch (const Error& error) {
    LogWarning("the lease is not released, another replica has to wait until it expires: {}",
               error.what());
  }
}

void LeaseKeeper::Keep(const std::stop_token& stop) {
  bool led = false;
  std::string holder, complaint;
  while (!stop.stop_requested()) {
    try {
      lease_.Try();
      answered_at_ = clock_.MonotonicSeconds();
      complaint.clear();
    } catch (const Error& error) {
      if (complaint != error.what()) LogWarning("{}", error.what());
      complaint = error.what();
    }
    if (const bool leads = lease_.leads(); leads != led) {
      led = leads;
      on_change_();
    }
    if (!led && lease_.holder() != holder && !lease_.holder().empty())
      LogInfo("{} leads", lease_.holder());
    holder = lease_.holder();
    WaitFor(retry_seconds_, stop);
  }
}

}  // namespace renzan::cluster::kubernetes
