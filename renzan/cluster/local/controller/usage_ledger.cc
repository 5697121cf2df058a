#include "renzan/cluster/local/controller/usage_ledger.h"

#include <algorithm>

#include "renzan/cluster/core/order/fair_share.h"
#include "renzan/cluster/local/controller/accounting.h"
#include "renzan/cluster/local/controller/cluster_state.h"

namespace renzan::cluster::local {
namespace {

std::string NameOfKind(const Snapshot& snapshot) {
  return snapshot.resource_names[KindThatCounts(snapshot)];
}

TimeMs HalfLifeOf(const Snapshot& snapshot, const std::string& name) {
  for (const Queue& queue : snapshot.queues)
    if (queue.name == name && queue.fair_share) return queue.fair_share->half_life;
  return 0;
}

}  // namespace

void UsageLedger::Recover() {
  accounted_until_ = store_.AccountedUntil().value_or(snapshot_.now);
  recovering_ = true;
  for (UsedLatelyRecord& used : store_.UsedLately())
    if (used.kind == NameOfKind(snapshot_)) used_lately_[{used.queue, used.user}] = std::move(used);
}

void UsageLedger::Committed(TimeMs until) {
  accounted_until_ = until;
  for (auto& [owner, used] : next_used_lately_) used_lately_[owner] = std::move(used);
  next_used_lately_.clear();
}

void UsageLedger::ClockWentBack(TimeMs now) {
  accounted_until_ = std::min(accounted_until_, now);
  for (auto& [owner, used] : used_lately_) used.as_of = std::min(used.as_of, now);
}

UsageRecord UsageLedger::UsageSince(const Job& job, TimeMs until) const {
  // A job that started since then is counted from its start.
  const TimeMs since = std::max(accounted_until_, job.started);
  const double seconds = static_cast<double>(std::max<TimeMs>(0, until - since)) / 1000;
  return {.gpu_seconds = seconds * static_cast<double>(GpusOf(snapshot_, job)),
          .cost = seconds / 3600 * PricePerHour(snapshot_, job)};
}

void UsageLedger::Put(TimeMs until) {
  for (const Job& job : snapshot_.jobs) {
    if (job.placement.empty()) continue;
    UsageRecord usage = store_.Usage(job.id);
    usage += UsageSince(job, until);
    store_.PutUsage(job.id, usage);
  }
  const double seconds = static_cast<double>(until - accounted_until_) / 1000;
  for (const LoanRecord& loan : LoansAfter(seconds)) store_.Put(loan);
  next_used_lately_ = UsedLatelyByRunning(until);
  for (const auto& [owner, used] : next_used_lately_) store_.Put(used);
  store_.PutAccountedUntil(until);
}

// The stored loans that grow, after the GPUs lent now have been lent for `seconds` more.
std::vector<LoanRecord> UsageLedger::LoansAfter(double seconds) const {
  std::vector<LoanRecord> grown;
  const std::vector<Loan> loans = LoansNow(snapshot_);
  if (loans.empty()) return grown;
  const std::vector<LoanRecord> before = store_.Loans();
  for (const Loan& loan : loans) {
    // What still runs in a queue that has become a parent.
    if (snapshot_.queues[loan.lender].name == snapshot_.queues[loan.borrower].name) continue;
    LoanRecord record{.lender = snapshot_.queues[loan.lender].name,
                      .borrower = snapshot_.queues[loan.borrower].name,
                      .gpu_seconds = loan.gpus * seconds};
    for (const LoanRecord& each : before)
      if (each.lender == record.lender && each.borrower == record.borrower)
        record.gpu_seconds += each.gpu_seconds;
    grown.push_back(record);
  }
  return grown;
}

std::map<QueueAndUser, UsedLatelyRecord> UsageLedger::UsedLatelyByRunning(TimeMs until) const {
  std::map<QueueAndUser, UsedLatelyRecord> used;
  const int kind = KindThatCounts(snapshot_);
  for (const Job& job : snapshot_.jobs) {
    const Queue& queue = snapshot_.queues[job.queue];
    if (job.placement.empty() || !queue.fair_share) continue;
    const TimeMs half_life = queue.fair_share->half_life;
    const QueueAndUser owner{queue.name, snapshot_.users[job.user].name};
    const auto [at, is_new] = used.try_emplace(owner);
    UsedLatelyRecord& its = at->second;
    if (is_new) {
      if (const auto known = used_lately_.find(owner); known != used_lately_.end())
        its.seconds = Decayed(known->second.seconds,
                              std::max<TimeMs>(0, until - known->second.as_of), half_life);
      its.queue = owner.queue;
      its.user = owner.user;
      its.kind = NameOfKind(snapshot_);
      its.as_of = until;
    }
    const TimeMs since = std::max(accounted_until_, job.started);
    its.seconds += DecayedUse(UsePerSecond(snapshot_, job, NumWorkers(job.placement), kind),
                              std::max<TimeMs>(0, until - since), half_life);
  }
  return used;
}

std::map<QueueAndUser, double> UsageLedger::UsedLately(TimeMs now) const {
  std::map<QueueAndUser, double> all;
  for (const auto& [owner, used] : used_lately_)
    if (const TimeMs half_life = HalfLifeOf(snapshot_, owner.queue); half_life > 0)
      all[owner] = Decayed(used.seconds, std::max<TimeMs>(0, now - used.as_of), half_life);
  for (const auto& [owner, used] : UsedLatelyByRunning(now)) all[owner] = used.seconds;
  return all;
}

void UsageLedger::SetUsedLately(Snapshot& snapshot) const {
  const auto is_fair = [](const Queue& queue) { return queue.fair_share.has_value(); };
  if (std::none_of(snapshot.queues.begin(), snapshot.queues.end(), is_fair)) return;
  const std::map<QueueAndUser, double> all = UsedLately(snapshot.now);
  for (Queue& queue : snapshot.queues) {
    if (!queue.fair_share) continue;
    queue.fair_share->used.clear();
    for (int user = 0; user < static_cast<int>(snapshot.users.size()); ++user)
      if (const auto at = all.find({queue.name, snapshot.users[user].name}); at != all.end())
        queue.fair_share->used.push_back({user, at->second});
  }
}

UsageRecord UsageLedger::Of(JobId id) const {
  UsageRecord usage = store_.Usage(id);
  const Job* job = snapshot_.Find(id);
  if (job && !job->placement.empty()) usage += UsageSince(*job, NowMs(clock_));
  return usage;
}

std::map<QueueAndUser, UsageRecord> UsageLedger::Sums(
    const std::vector<const JobRecord*>& unfinished) const {
  std::map<QueueAndUser, UsageRecord> sums = store_.UsageOfEnded();
  for (const JobRecord* job : unfinished) {
    if (job->attempts == 0) continue;
    UsageRecord rest = Of(job->id);
    for (const UsageSpan& span : store_.UsageSpansOf(job->id)) {
      sums[{span.queue, span.user}] += span.usage;
      rest -= span.usage;
    }
    sums[{job->queue, job->user}] += rest;
  }
  return sums;
}

UsageSpan UsageLedger::SpanOf(const JobRecord& job, const AttemptRecord& attempt) const {
  UsageRecord used = Of(job.id);
  for (const UsageSpan& span : store_.UsageSpansOf(job.id)) used -= span.usage;
  const TimeMs now = NowMs(clock_);
  return {.job = job.id,
          .attempt = attempt.number,
          .queue = job.queue,
          .user = job.user,
          .started = std::min(attempt.started, now),
          .ended = now,
          .usage = used};
}

UsageRecord UsedWithin(const UsageSpan& span, TimeMs from, TimeMs to) {
  if (span.started == span.ended)
    return from <= span.ended && span.ended < to ? span.usage : UsageRecord();
  const TimeMs within = std::min(span.ended, to) - std::max(span.started, from);
  if (within <= 0) return {};
  const double share = static_cast<double>(within) / static_cast<double>(span.ended - span.started);
  return {.gpu_seconds = span.usage.gpu_seconds * share, .cost = span.usage.cost * share};
}

std::vector<LoanRecord> UsageLedger::Loans() const {
  std::vector<LoanRecord> loans = store_.Loans();
  const double seconds =
      static_cast<double>(std::max<TimeMs>(0, NowMs(clock_) - accounted_until_)) / 1000;
  for (const LoanRecord& grown : LoansAfter(seconds)) {
    const auto at = std::find_if(loans.begin(), loans.end(), [&](const LoanRecord& each) {
      return each.lender == grown.lender && each.borrower == grown.borrower;
    });
    if (at == loans.end())
      loans.push_back(grown);
    else
      *at = grown;
  }
  return loans;
}

}  // namespace renzan::cluster::local
