#include <algorithm>

#include "renzan/cluster/local/controller/accounting.h"
#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {

UsageRecord Controller::UsageSince(const Job& job, TimeMs until) const {
  // What started after the last count is counted from there.
  const TimeMs since = std::max(accounted_until_, job.started);
  const double seconds = static_cast<double>(std::max<TimeMs>(0, until - since)) / 1000;
  return {.gpu_seconds = seconds * static_cast<double>(GpusOf(state_.snapshot, job)),
          .cost = seconds / 3600 * PricePerHour(state_.snapshot, job)};
}

// Everybody who has workers, and who lends to whom, since the last time.
void Controller::Account(TimeMs until) {
  for (const Job& job : state_.snapshot.jobs) {
    if (job.placement.empty()) continue;
    UsageRecord usage = store_.Usage(job.id);
    const UsageRecord more = UsageSince(job, until);
    usage.gpu_seconds += more.gpu_seconds;
    usage.cost += more.cost;
    store_.PutUsage(job.id, usage);
  }
  const double seconds = static_cast<double>(until - accounted_until_) / 1000;
  for (const LoanRecord& loan : LoansSince(seconds)) store_.Put(loan);
  pools_.Put();
  store_.PutAccountedUntil(until);
}

// Those that have grown by what has been lent for so long.
std::vector<LoanRecord> Controller::LoansSince(double seconds) {
  std::vector<LoanRecord> grown;
  const std::vector<Loan> loans = LoansNow(state_.snapshot);
  if (loans.empty()) return grown;
  const std::vector<LoanRecord> before = store_.Loans();
  for (const Loan& loan : loans) {
    LoanRecord record{.lender = state_.snapshot.queues[loan.lender].name,
                      .borrower = state_.snapshot.queues[loan.borrower].name,
                      .gpu_seconds = loan.gpus * seconds};
    for (const LoanRecord& each : before)
      if (each.lender == record.lender && each.borrower == record.borrower)
        record.gpu_seconds += each.gpu_seconds;
    grown.push_back(record);
  }
  return grown;
}

UsageRecord Controller::UsageOf(JobId id) {
  UsageRecord usage = store_.Usage(id);
  const Job* job = state_.snapshot.Find(id);
  if (!job || job->placement.empty()) return usage;
  const UsageRecord more = UsageSince(*job, Now());
  usage.gpu_seconds += more.gpu_seconds;
  usage.cost += more.cost;
  return usage;
}

std::map<QueueAndUser, UsageRecord> Controller::UsageUntilNow() {
  std::map<QueueAndUser, UsageRecord> sums = store_.UsageOfEnded();
  const auto add = [&](const JobRecord& job) {
    const UsageRecord usage = UsageOf(job.id);
    UsageRecord& sum = sums[{job.queue, job.user}];
    sum.gpu_seconds += usage.gpu_seconds;
    sum.cost += usage.cost;
  };
  for (const auto& [id, live] : state_.live) add(live.record);
  for (const auto& [id, collection] : collections_) add(collection.record);
  return sums;
}

std::vector<LoanRecord> Controller::LoansUntilNow() {
  std::vector<LoanRecord> loans = store_.Loans();
  const double seconds = static_cast<double>(std::max<TimeMs>(0, Now() - accounted_until_)) / 1000;
  for (const LoanRecord& grown : LoansSince(seconds)) {
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
