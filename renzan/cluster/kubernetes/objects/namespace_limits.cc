#include "renzan/cluster/kubernetes/objects/namespace_limits.h"

#include <fmt/format.h>

#include <limits>

#include "renzan/base/counted.h"

namespace renzan::cluster::kubernetes {
namespace {

std::string Forbidden(const std::string& ns, const std::string& what, const char* limit) {
  return fmt::format(
      "{} (an administrator may raise limits.{} of the ClusterPolicy 'default', or add '{}' to "
      "limits.exemptNamespaces)",
      what, limit, ns);
}

}  // namespace

NamespaceLimits NamespaceLimits::None() {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  return {.max_priority = kAny,
          .max_pending_jobs = kAny,
          .not_preemptible = true,
          .grand_challenge = true};
}

spec::Submitter SubmitterOf(const NamespaceLimits& limits, const std::string& ns) {
  return {
      .ns = ns, .administrator = limits.exempt.contains(ns), .max_priority = limits.max_priority};
}

std::string WhyForbidden(const NamespaceLimits& limits, const std::string& ns,
                         const spec::JobSpec& job, int64_t pending_jobs) {
  if (limits.exempt.contains(ns)) return "";
  if (job.grand_challenge && !limits.grand_challenge)
    return Forbidden(
        ns, fmt::format("grandChallenge: jobs in namespace '{}' may not stop everybody's", ns),
        "grandChallenge");
  if (!job.preemptible && !limits.not_preemptible)
    return Forbidden(
        ns, fmt::format("preemptible: false: jobs in namespace '{}' must be preemptible", ns),
        "notPreemptible");
  if (pending_jobs >= limits.max_pending_jobs)
    return Forbidden(ns,
                     fmt::format("namespace '{}' has {} before it, and may have at "
                                 "most {}: wait until some have started",
                                 ns, Counted(pending_jobs, "pending job"), limits.max_pending_jobs),
                     "maxPendingJobs");
  return "";
}

}  // namespace renzan::cluster::kubernetes
