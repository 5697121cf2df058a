#include "renzan/cluster/local/controller/transition_log.h"

#include <algorithm>

namespace renzan::cluster::local {

void TransitionLog::Commit(const JobRecord& record, const std::optional<AttemptRecord>& ended,
                           const std::string& kind, const std::string& text, TimeMs until,
                           const std::optional<EarlyFailure>& early_failure) {
  until = usage_.Until(until);
  store_.Transact([&] {
    usage_.Put(until);  // before the job's end, after which its usage is final
    pools_.Put();
    if (ended) PutUsageSpan(record, *ended);
    store_.Put(record, EventRecord{.time = NowMs(clock_), .kind = kind, .text = text});
    if (ended) store_.Put(*ended);
    if (early_failure) store_.Put(*early_failure);
    if (HasEnded(record.state)) LearnRunTime(record);
  });
  usage_.Committed(until);
  if (HasEnded(record.state)) {
    inherited_.Remove(record.id);
    directories_.Trim(record.id, record.attempts);
  }
  state_.needs_scheduling = true;
}

// What the job has used since its earlier attempts.
void TransitionLog::PutUsageSpan(const JobRecord& record, const AttemptRecord& attempt) {
  constexpr double kNothing = 1e-6;  // rounding
  UsageRecord used = store_.Usage(record.id);
  for (const UsageSpan& span : store_.UsageSpansOf(record.id)) used -= span.usage;
  if (used.gpu_seconds < kNothing && used.cost < kNothing) return;
  store_.Put(UsageSpan{.job = record.id,
                       .attempt = attempt.number,
                       .queue = record.queue,
                       .user = record.user,
                       .started = std::min(attempt.started, *attempt.ended),
                       .ended = *attempt.ended,
                       .usage = used});
}

// A job that never ran teaches nothing.
void TransitionLog::LearnRunTime(const JobRecord& record) {
  int64_t worker_ms = 0;
  for (const AttemptRecord& attempt : store_.Attempts(record.id))
    if (attempt.ended_by != "void") worker_ms += WorkerMs(attempt);
  if (const TimeMs ran = worker_ms / record.max_workers; ran > 0)
    store_.AddRunTime(TraitsOf(record), ran);
}

}  // namespace renzan::cluster::local
