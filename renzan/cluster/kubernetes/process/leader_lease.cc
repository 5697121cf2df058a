#include "renzan/cluster/kubernetes/process/leader_lease.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

LeaderLease::LeaderLease(LeaseOptions options, Api& api, const Clock& clock)
    : options_(std::move(options)), api_(api), clock_(clock) {}

void LeaderLease::Observe(const Json& lease) {
  const std::string version = TextAt(lease, {"metadata", "resourceVersion"});
  if (version != version_) changed_at_ = clock_.MonotonicSeconds();
  version_ = version;
  holder_ = TextAt(lease, {"spec", "holderIdentity"});
  held_for_seconds_ =
      static_cast<double>(NumberAt(lease, {"spec", "leaseDurationSeconds"},
                                   static_cast<int64_t>(std::ceil(options_.duration_seconds))));
}

Json LeaderLease::Renewed(Json lease) const {
  const std::string now = MicroTimeText(clock_.UnixSeconds());
  Json& spec = lease["spec"];
  if (TextAt(lease, {"spec", "holderIdentity"}) != options_.identity) {
    spec["leaseTransitions"] = NumberAt(lease, {"spec", "leaseTransitions"}, -1) + 1;
    spec["acquireTime"] = now;
  }
  spec["holderIdentity"] = options_.identity;
  spec["renewTime"] = now;
  spec["leaseDurationSeconds"] = static_cast<int64_t>(std::ceil(options_.duration_seconds));
  return lease;
}

void LeaderLease::Try() {
  // The server counts from a later moment.
  const double asked_at = clock_.MonotonicSeconds();
  try {
    Json lease;
    try {
      lease = api_.Get(Leases(), options_.ns, options_.name);
    } catch (const ApiError& error) {
      if (!error.is_not_found()) throw;
      may_hold_ = true;
      lease =
          api_.Create(Leases(), options_.ns, Renewed({{"metadata", {{"name", options_.name}}}}));
      Observe(lease);
      leads_until_ = asked_at + options_.renew_deadline_seconds;
      return;
    }
    Observe(lease);
    if (holder_ != options_.identity) {
      // Whatever this process believed until now.
      leads_until_ = 0;
      may_hold_ = false;
      if (!holder_.empty() && clock_.MonotonicSeconds() < changed_at_ + held_for_seconds_) return;
    }
    may_hold_ = true;
    Observe(api_.Replace(Leases(), options_.ns, Renewed(std::move(lease))));
    leads_until_ = asked_at + options_.renew_deadline_seconds;
  } catch (const ApiError& error) {
    // Another replica was faster.
    if (!error.is_conflict() && !error.is_already_exists()) throw;
  }
}

void LeaderLease::Release() {
  leads_until_ = 0;
  if (!std::exchange(may_hold_, false)) return;
  Json lease = api_.Get(Leases(), options_.ns, options_.name);
  if (TextAt(lease, {"spec", "holderIdentity"}) != options_.identity) return;
  lease["spec"]["holderIdentity"] = "";
  api_.Replace(Leases(), options_.ns, lease);
}

}  // namespace renzan::cluster::kubernetes
