#pragma once

// Which users may see and change what. All Require functions throw Error kNoPermission.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/spec/cluster_config.h"
#include "renzan/cluster/spec/job_spec.h"
#include "renzan/cluster/spec/queue_rights.h"

namespace renzan::cluster::local {

// The user who sent a request.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
  std::vector<std::string> groups = {};  // by name, where a submission is checked
  bool by_token = false;                 // over TCP: never an operator
};

// What one user's pending jobs take.
struct PendingUse {
  int64_t jobs = 0;
  int64_t text_bytes = 0;  // specifications and manifests
};

class AccessControl {
 public:
  // `daemon_uid`: this user and root are operators, unless a token says who they are. Others are
  // bound by `limits`.
  AccessControl(uid_t daemon_uid, const spec::ClusterConfig::LimitsConfig& limits)
      : daemon_uid_(daemon_uid), limits_(limits) {}

  bool IsOperator(const Caller& caller) const;
  bool MayChange(const JobRecord& job, const Caller& caller) const;
  // Required to see and change the job.
  void RequireOwner(const JobRecord& job, const Caller& caller) const;
  void RequireOperator(const Caller& caller) const;
  // A daemon that is not root's can run jobs only as its own user.
  void RequireCanRunAs(const Caller& caller) const;
  // `pending`: the caller's pending jobs, without this one, whose texts take `text_bytes`.
  void RequireWithinLimits(const Caller& caller, const spec::JobSpec& spec, int64_t text_bytes,
                           const PendingUse& pending) const;
  // As whom queues (CheckSubmission) know the caller.
  spec::Submitter SubmitterOf(const Caller& caller) const;
  // Of other users' jobs, in queues that say nothing about it.
  int64_t max_priority() const { return limits_.max_priority; }

 private:
  uid_t daemon_uid_;
  spec::ClusterConfig::LimitsConfig limits_;
};

}  // namespace renzan::cluster::local
