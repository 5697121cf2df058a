#include "renzan/cluster/local/controller/access.h"

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/cluster/spec/amounts.h"

namespace renzan::cluster::local {

bool AccessControl::IsOperator(const Caller& caller) const {
  return !caller.by_token && (caller.uid == daemon_uid_ || caller.uid == 0);
}

bool AccessControl::MayChange(const JobRecord& job, const Caller& caller) const {
  return caller.uid == job.uid || IsOperator(caller);
}

void AccessControl::RequireOwner(const JobRecord& job, const Caller& caller) const {
  if (!MayChange(job, caller))
    Fail(ErrorCode::kNoPermission, "job {} belongs to {}: only they and the operator may do that",
         job.id, job.user);
}

void AccessControl::RequireOperator(const Caller& caller) const {
  if (caller.by_token)
    Fail(ErrorCode::kNoPermission,
         "only the operator may do that, on the daemon's machine, as the user whose daemon this is "
         "or root: a token gives the rights of an ordinary user");
  if (!IsOperator(caller))
    Fail(ErrorCode::kNoPermission,
         "only the operator (the user whose daemon this is, or root) may do that");
}

void AccessControl::RequireCanRunAs(const Caller& caller) const {
  if (daemon_uid_ != 0 && caller.uid != daemon_uid_)
    Fail(ErrorCode::kNoPermission,
         "this daemon can run jobs only as the user who started it (user id {}): submit it as that "
         "user, or start a daemon of your own with `renzan cluster up`",
         daemon_uid_);
}

void AccessControl::RequireWithinLimits(const Caller& caller, const spec::JobSpec& spec,
                                        int64_t text_bytes, const PendingUse& pending) const {
  if (IsOperator(caller)) return;
  constexpr const char* kWhoMay = "the operator may, or may raise";
  if (spec.grand_challenge && !limits_.grand_challenge)
    Fail(ErrorCode::kNoPermission,
         "grand_challenge: you may not stop everybody's jobs ({} limits.grand_challenge)", kWhoMay);
  if (!spec.preemptible && !limits_.not_preemptible)
    Fail(ErrorCode::kNoPermission,
         "preemptible: false: your jobs must be preemptible ({} limits.not_preemptible)", kWhoMay);
  if (pending.jobs >= limits_.max_pending_jobs)
    Fail(ErrorCode::kNoPermission,
         "you have {}, and may have at most {}: wait until some have started ({} "
         "limits.max_pending_jobs)",
         Counted(pending.jobs, "pending job"), limits_.max_pending_jobs, kWhoMay);
  const int64_t bytes = pending.text_bytes + text_bytes;
  const int64_t most = spec::ParseMebibytes(limits_.max_pending_specs) << 20;
  if (bytes > most)
    Fail(ErrorCode::kNoPermission,
         "the specifications and environments of your {} and of this one take {} KiB; the limit is "
         "{} KiB: wait until some have started, keep large data in files, or take over fewer "
         "variables (`renzan submit --export NONE`, or names) ({} limits.max_pending_specs)",
         Counted(pending.jobs, "pending job"), bytes >> 10, most >> 10, kWhoMay);
}

spec::Submitter AccessControl::SubmitterOf(const Caller& caller) const {
  return {.user = caller.name,
          .groups = caller.groups,
          .administrator = IsOperator(caller),
          .max_priority = limits_.max_priority};
}

}  // namespace renzan::cluster::local
