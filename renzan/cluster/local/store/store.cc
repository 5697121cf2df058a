#include "renzan/cluster/local/store/store.h"

#include <algorithm>

#include "renzan/base/log.h"
#include "renzan/cluster/local/store/guarded-inl.h"
#include "renzan/cluster/local/store/reserved_room.h"
#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local {
namespace {

struct Query {
  std::string sql;
  std::vector<SqlValue> arguments;
};

// `what` of the jobs that match the filter. Every plan uses an index or reads as few whole rows as
// possible, because rows contain documents.
Query QueryEnded(const std::string& what, const EndedFilter& filter, bool newest_first) {
  const bool by_owner = filter.queue || filter.user || filter.state;
  const bool by_number = newest_first && !by_owner && filter.since == 0;
  Query query{.sql = fmt::format("SELECT {} FROM jobs {} WHERE ended IS NOT NULL", what,
                                 by_owner    ? "INDEXED BY jobs_by_owner"
                                 : by_number ? "NOT INDEXED"
                                             : "INDEXED BY jobs_by_end"),
              .arguments = {}};
  const auto require = [&](const char* condition, const SqlValue& value) {
    query.sql += fmt::format(" AND {} ?", condition);
    query.arguments.push_back(value);
  };
  if (filter.since > 0) require("ended >=", filter.since);
  if (filter.before != kNever) require("id <", filter.before);
  if (filter.queue) require("queue =", *filter.queue);
  if (filter.user) require("user =", *filter.user);
  if (filter.state) require("state =", std::string(NameOf(*filter.state)));
  if (newest_first) query.sql += " ORDER BY id DESC";
  return query;
}

}  // namespace

Store::~Store() {
  if (room_reserved_) store::KeepLogRoom(path_);
}

void Store::Transact(const std::function<void()>& change) {
  Guarded([&] { database_->Transact(change); });
}

void Store::ReserveRoom() {
  Guarded([&] { store::ReserveRoom(*database_); });
  room_reserved_ = true;
}

void Store::Put(const JobRecord& job, const std::optional<EventRecord>& event) {
  const std::optional<StoredJob> before = Look(job.id, /*with_texts=*/false);
  CHECK_MSG(!before || !before->record || !before->record->ended, "job {} has ended already",
            job.id);
  CHECK(HasEnded(job.state) == job.ended.has_value());
  CHECK(!job.ended || !job.attempt);
  // `job` is the truth, whatever the disk has made of it since.
  if (before && !before->record) {
    if (reported_.insert(job.id).second)
      LogError("job {}: its record in state.db was damaged ({}) and is written again", job.id,
               before->damage);
    KeepDamaged(store::Jobs(), job.id);
    MatchIndexes(job.id);
  }
  const int64_t events = before ? before->events : 0;
  store::Jobs().Put(*database_, store::RowOf(job, events + event.has_value()));
  if (!before || !job.spec.empty()) store::JobTexts().Put(*database_, store::TextRowOf(job));
  if (event)
    store::Events().Put(*database_, {job.id, events, event->time, event->kind, event->text});
  const auto put = [&](const char* fact, int64_t value) {
    store::Facts().Put(*database_, {std::string(fact), value});
  };
  if (!before) {
    PutUsage(job.id, {});
    put(store::kLastJob, std::max(Fact(store::kLastJob).value_or(0), job.id));
  }
  if (before.has_value() == job.ended.has_value())
    put(store::kUnfinishedJobs, Fact(store::kUnfinishedJobs).value_or(0) + (before ? -1 : 1));
  if (job.ended) CountUsageOfEnded(job);
}

void Store::Put(const AttemptRecord& attempt) {
  CHECK(attempt.ended);
  store::Attempts().Put(*database_, store::RowOf(attempt));
}

void Store::Put(const NodeRecord& node) {
  store::Nodes().Put(*database_,
                     {node.name, node.pool, std::string(NameOf(node.state)), node.until});
  if (node.closed_by == ClosedBy::kOperator)
    store::Closures().Delete(*database_, "node", node.name);
  else
    store::Closures().Put(*database_,
                          {node.name, std::string(NameOf(node.closed_by)), node.reason});
}

void Store::Put(const EarlyFailure& failure) {
  store::EarlyFailures().Put(*database_, {failure.job, failure.node, failure.user, failure.time,
                                          int64_t{failure.counts}, int64_t{failure.ran_elsewhere}});
}

void Store::DeleteEarlyFailures(JobId job) {
  store::EarlyFailures().Delete(*database_, "job", job);
}

void Store::DeleteEarlyFailuresOn(const std::string& node) {
  store::EarlyFailures().Delete(*database_, "node", node);
}

void Store::Put(const QuotaOverrideRecord& quota_override) {
  store::QuotaOverrides().Put(*database_, {quota_override.user, quota_override.quota_override.until,
                                           quota_override.quota_override.max_gpus});
}

void Store::PutUsage(JobId job, const UsageRecord& usage) {
  store::Usage().Put(*database_, {job, usage.gpu_seconds, usage.cost});
}

void Store::Put(const PoolRecord& pool) {
  store::Pools().Put(*database_, {pool.name, pool.node_ms, pool.interruptions});
}

void Store::Put(const LoanRecord& loan) {
  store::Loans().Put(*database_, {loan.lender, loan.borrower, loan.gpu_seconds});
}

void Store::PutAccountedUntil(TimeMs time) {
  store::Facts().Put(*database_, {std::string(store::kAccountedUntil), time});
}

void Store::AddRunTime(const JobTraits& traits, TimeMs ran) {
  const int64_t number =
      1 + database_->QueryOne("SELECT coalesce(max(number), 0) FROM ended_run_times").Int(0);
  store::EndedRunTimes().Put(*database_,
                             {number, traits.queue, traits.user, traits.name, traits.size, ran});
  if (number % RunTimes::kGeneration == 0)
    database_->Run("DELETE FROM ended_run_times WHERE number <= ?", {RunTimes::FirstKnown(number)});
}

// `jobs` is the change of the number of jobs that the store has.
void Store::CountEnded(const JobRecord& job, int64_t jobs, const UsageRecord& usage) {
  const std::vector<SqlValue> key = {job.queue, job.user, std::string(NameOf(job.state))};
  const auto rows =
      store::EndedSums().Select(*database_, "WHERE queue = ? AND user = ? AND state = ?", key);
  const SqlRow before = rows.empty() ? SqlRow({{}, {}, {}, int64_t{0}, 0.0, 0.0}) : rows.front();
  store::EndedSums().Put(
      *database_, {key[0], key[1], key[2], before.Int(3) + jobs, before.Real(4) + usage.gpu_seconds,
                   before.Real(5) + usage.cost});
}

void Store::DeleteJobs(const std::vector<JobId>& jobs) {
  for (const JobId id : jobs) {
    const std::optional<JobRecord> job = FindJob(id);
    CHECK_MSG(job && HasEnded(job->state), "job {} has not ended", id);
    CountEnded(*job, -1, {});
    if (!job->damaged.empty()) MatchIndexes(id);
    for (const CheckedTable* table :
         {&store::Events(), &store::Attempts(), &store::Usage(), &store::EarlyFailures(),
          &store::JobTexts(), &store::Damaged()})
      table->Delete(*database_, "job", id);
    store::Jobs().Delete(*database_, "id", id);
  }
}

JobId Store::LastJob() {
  return Guarded([&] { return Fact(store::kLastJob).value_or(0); });
}

std::vector<JobRecord> Store::EndedJobs(const EndedFilter& filter, int limit) {
  return Guarded([&] {
    Query query = QueryEnded("id", filter, true);
    query.arguments.emplace_back(int64_t{limit});
    std::vector<JobRecord> jobs;
    for (const SqlRow& row : database_->Query(query.sql + " LIMIT ?", query.arguments)) {
      std::optional<JobRecord> found = RecordOf(row.Int(0), /*with_texts=*/false);
      if (!found) throw CorruptDatabase("an index refers to a job that does not exist");
      jobs.push_back(std::move(*found));
    }
    std::reverse(jobs.begin(), jobs.end());
    return jobs;
  });
}

int64_t Store::CountEnded(const EndedFilter& filter) {
  return Guarded([&] {
    const Query query = QueryEnded("count(*)", filter, false);
    return database_->Query(query.sql, query.arguments).front().Int(0);
  });
}

std::vector<EndedKey> Store::EndedBefore(TimeMs time, const EndedKey& after, int limit) {
  return Guarded([&] {
    std::vector<EndedKey> jobs;
    for (const SqlRow& row : database_->Query(
             "SELECT ended, id FROM jobs INDEXED BY jobs_by_end WHERE ended < ? AND (ended, id) > "
             "(?, ?) ORDER BY ended, id LIMIT ?",
             {time, after.ended, after.id, int64_t{limit}}))
      jobs.push_back({row.Int(0), row.Int(1)});
    return jobs;
  });
}

std::optional<TimeMs> Store::FirstEnd() {
  const std::vector<EndedKey> first = EndedBefore(kNever, {}, 1);
  return first.empty() ? std::nullopt : std::optional(first.front().ended);
}

std::optional<JobRecord> Store::FindJob(JobId job) {
  return Guarded([&] { return RecordOf(job, /*with_texts=*/true); });
}

std::map<std::string, int64_t> Store::CountByState() {
  return Guarded([&] {
    std::map<std::string, int64_t> counts;
    for (const SqlRow& row : database_->Query(
             "SELECT state, count(*) FROM jobs INDEXED BY jobs_unfinished WHERE ended IS "
             "NULL GROUP BY state"))
      counts[row.Text(0)] = row.Int(1);
    for (const SqlRow& row : store::EndedSums().Select(*database_))
      if (row.Int(3) > 0) counts[row.Text(2)] += row.Int(3);
    return counts;
  });
}

std::vector<AttemptRecord> Store::Attempts(JobId id) {
  return Guarded([&] {
    std::vector<AttemptRecord> attempts;
    for (const SqlRow& row :
         store::Attempts().Select(*database_, "WHERE job = ? ORDER BY number", {id}))
      attempts.push_back(store::AttemptOf(row));
    const std::optional<JobRecord> job = RecordOf(id, /*with_texts=*/false);
    if (job && job->attempt) attempts.push_back(*job->attempt);
    if (static_cast<int>(attempts.size()) != (job ? job->attempts : 0))
      throw CorruptDatabase(fmt::format("attempts of job {} are missing", id));
    return attempts;
  });
}

std::vector<EventRecord> Store::Events(JobId id) {
  return Guarded([&] {
    std::vector<EventRecord> events;
    for (const SqlRow& row :
         store::Events().Select(*database_, "WHERE job = ? ORDER BY number", {id}))
      events.push_back({.time = row.Int(2), .kind = row.Text(3), .text = row.Text(4)});
    const std::optional<StoredJob> job = Look(id, /*with_texts=*/false);
    if (static_cast<int64_t>(events.size()) != (job ? job->events : 0))
      throw CorruptDatabase(fmt::format("events of job {} are missing", id));
    return events;
  });
}

std::vector<NodeRecord> Store::Nodes() {
  return Guarded([&] {
    std::map<std::string, SqlRow> closures;
    for (const SqlRow& row : store::Closures().Select(*database_))
      closures.emplace(row.Text(0), row);
    std::vector<NodeRecord> nodes;
    for (const SqlRow& row : store::Nodes().Select(*database_)) {
      const auto state = NodeStateNamed(row.Text(2));
      if (!state) throw CorruptDatabase("unknown state of a node");
      nodes.push_back({row.Text(0), row.Text(1), *state, row.Int(3)});
      if (const auto at = closures.find(row.Text(0)); at != closures.end()) {
        const auto by = ClosedByNamed(at->second.Text(1));
        if (!by) throw CorruptDatabase("unknown closure of a node");
        nodes.back().closed_by = *by;
        nodes.back().reason = at->second.Text(2);
      }
    }
    return nodes;
  });
}

std::vector<EarlyFailure> Store::EarlyFailures() {
  return Guarded([&] {
    std::vector<EarlyFailure> failures;
    for (const SqlRow& row : store::EarlyFailures().Select(*database_))
      failures.push_back({.job = row.Int(0),
                          .node = row.Text(1),
                          .user = row.Text(2),
                          .time = row.Int(3),
                          .counts = row.Int(4) != 0,
                          .ran_elsewhere = row.Int(5) != 0});
    return failures;
  });
}

std::vector<QuotaOverrideRecord> Store::QuotaOverrides() {
  return Guarded([&] {
    std::vector<QuotaOverrideRecord> quota_overrides;
    for (const SqlRow& row : store::QuotaOverrides().Select(*database_))
      quota_overrides.push_back({row.Text(0), {.max_gpus = row.Int(2), .until = row.Int(1)}});
    return quota_overrides;
  });
}

UsageRecord Store::Usage(JobId job) {
  return Guarded([&]() -> UsageRecord {
    const auto rows = store::Usage().Select(*database_, "WHERE job = ?", {job});
    if (!rows.empty()) return {.gpu_seconds = rows.front().Real(1), .cost = rows.front().Real(2)};
    if (store::Jobs().Find(*database_, job))
      throw CorruptDatabase(fmt::format("usage of job {} is missing", job));
    return {};
  });
}

std::vector<EndedRunTime> Store::EndedRunTimesAfter(int64_t number) {
  return Guarded([&] {
    std::vector<EndedRunTime> ended;
    for (const SqlRow& row :
         store::EndedRunTimes().Select(*database_, "WHERE number > ? ORDER BY number", {number}))
      ended.push_back({.number = row.Int(0),
                       .traits = JobTraits{row.Text(1), row.Text(2), row.Text(3), row.Int(4)},
                       .ran_ms = row.Int(5)});
    return ended;
  });
}

std::vector<PoolRecord> Store::Pools() {
  return Guarded([&] {
    std::vector<PoolRecord> pools;
    for (const SqlRow& row : store::Pools().Select(*database_))
      pools.push_back({row.Text(0), row.Int(1), row.Int(2)});
    return pools;
  });
}

std::map<QueueAndUser, UsageRecord> Store::UsageOfEnded() {
  return Guarded([&] {
    std::map<QueueAndUser, UsageRecord> sums;
    for (const SqlRow& row : store::EndedSums().Select(*database_)) {
      UsageRecord& sum = sums[{row.Text(0), row.Text(1)}];
      sum.gpu_seconds += row.Real(4);
      sum.cost += row.Real(5);
    }
    return sums;
  });
}

std::vector<LoanRecord> Store::Loans() {
  return Guarded([&] {
    std::vector<LoanRecord> loans;
    for (const SqlRow& row : store::Loans().Select(*database_))
      loans.push_back({row.Text(0), row.Text(1), row.Real(2)});
    return loans;
  });
}

std::optional<TimeMs> Store::AccountedUntil() {
  return Guarded([&] { return Fact(store::kAccountedUntil); });
}

std::optional<int64_t> Store::Fact(const std::string& name) {
  const auto rows = store::Facts().Select(*database_, "WHERE name = ?", {name});
  if (rows.empty()) return std::nullopt;
  return rows.front().Int(1);
}

}  // namespace renzan::cluster::local
