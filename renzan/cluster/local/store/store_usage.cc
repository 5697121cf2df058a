// Store: what was used when.

#include <algorithm>
#include <tuple>

#include "renzan/base/clock.h"
#include "renzan/cluster/local/store/guarded-inl.h"
#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local {
namespace {

UsageSpan SpanOf(const SqlRow& row) {
  return {.job = row.Int(0),
          .attempt = static_cast<int>(row.Int(1)),
          .queue = row.Text(2),
          .user = row.Text(3),
          .started = row.Int(4),
          .ended = row.Int(5),
          .usage = {.gpu_seconds = row.Real(6), .cost = row.Real(7)}};
}

}  // namespace

void Store::Put(const UsageSpan& span) {
  store::UsageSpans().Put(
      *database_, {span.job, int64_t{span.attempt}, span.queue, span.user, span.started, span.ended,
                   span.usage.gpu_seconds, span.usage.cost});
}

void Store::Put(const UsedLatelyRecord& used) {
  store::UsedLately().Put(*database_, {used.queue, used.user, used.kind, used.seconds, used.as_of});
}

std::vector<UsedLatelyRecord> Store::UsedLately() {
  return Guarded([&] {
    std::vector<UsedLatelyRecord> records;
    for (const SqlRow& row : store::UsedLately().Select(*database_))
      records.push_back({.queue = row.Text(0),
                         .user = row.Text(1),
                         .kind = row.Text(2),
                         .seconds = row.Real(3),
                         .as_of = row.Int(4)});
    return records;
  });
}

std::vector<UsageSpan> Store::UsageSpansOf(JobId job) {
  return Guarded([&] {
    std::vector<UsageSpan> spans;
    for (const SqlRow& row : store::UsageSpans().Select(*database_, "WHERE job = ?", {job}))
      spans.push_back(SpanOf(row));
    return spans;
  });
}

std::vector<UsageSpan> Store::UsageSpansAfter(const UsageSpanKey& after, int limit) {
  return Guarded([&] {
    std::vector<UsageSpan> spans;
    for (const SqlRow& row : store::UsageSpans().Select(
             *database_,
             "WHERE (ended, job, attempt) > (?, ?, ?) ORDER BY ended, job, attempt LIMIT ?",
             {after.ended, after.job, int64_t{after.attempt}, int64_t{limit}}))
      spans.push_back(SpanOf(row));
    return spans;
  });
}

std::optional<TimeMs> Store::UsageDatedSince() {
  return Guarded([&] { return Fact(store::kUsageDatedSince); });
}

// Each part of a job's usage counts for the queue that it was in then.
void Store::CountUsageOfEnded(const JobRecord& job) {
  UsageRecord rest = Usage(job.id);
  for (const UsageSpan& span : UsageSpansOf(job.id)) {
    if (span.queue == job.queue) continue;
    JobRecord before;
    before.queue = span.queue;
    before.user = span.user;
    before.state = job.state;
    CountEnded(before, 0, span.usage);
    rest -= span.usage;
  }
  CountEnded(job, 1, rest);
}

// Version 9 says when usage arose. Earlier ones had only each job's sum, which is shared out among
// its attempts by the worker time that they had. What jobs used that have been deleted has no date.
void Store::UpgradeToVersion9() {
  const auto jobs = database_->Query("SELECT id, queue, user FROM jobs");
  if (const TimeMs now = SystemClock().UnixMs();
      static_cast<int64_t>(jobs.size()) < Fact(store::kLastJob).value_or(0))
    store::Facts().Put(*database_, {std::string(store::kUsageDatedSince), now});
  const TimeMs accounted = Fact(store::kAccountedUntil).value_or(0);
  for (const SqlRow& job : jobs) {
    const std::vector<AttemptRecord> attempts = Attempts(job.Int(0));
    const UsageRecord usage = Usage(job.Int(0));
    int64_t all = 0;
    for (AttemptRecord attempt : attempts) {
      attempt.ended = attempt.ended.value_or(std::max(accounted, attempt.started));
      all += WorkerMs(attempt);
    }
    for (const AttemptRecord& attempt : attempts) {
      if (!attempt.ended || WorkerMs(attempt) == 0) continue;
      const double share = static_cast<double>(WorkerMs(attempt)) / static_cast<double>(all);
      const UsageRecord used{.gpu_seconds = usage.gpu_seconds * share, .cost = usage.cost * share};
      if (used.gpu_seconds > 0 || used.cost > 0)
        Put(UsageSpan{.job = attempt.job,
                      .attempt = attempt.number,
                      .queue = job.Text(1),
                      .user = job.Text(2),
                      .started = attempt.started,
                      .ended = *attempt.ended,
                      .usage = used});
    }
  }
}

}  // namespace renzan::cluster::local
