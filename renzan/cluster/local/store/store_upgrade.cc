// Store: databases of earlier versions.

#include <algorithm>
#include <utility>

#include "renzan/cluster/local/store/old_tables.h"
#include "renzan/cluster/local/store/reserved_room.h"
#include "renzan/cluster/local/store/store.h"
#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local {
namespace {

// The table of jobs during an upgrade.
const std::string kOldJobs = "jobs_before";

// Columns of Attempts() and Events().
constexpr size_t kEndedByColumn = 10, kKindColumn = 3;

// Replaces `from` by `to` in that column of all rows.
void ReplaceText(Database& database, const CheckedTable& table, size_t column,
                 const std::string& from, const std::string& to) {
  for (const SqlRow& row : table.Select(database)) {
    if (row.Text(column) != from) continue;
    std::vector<SqlValue> values = row.values();
    values[column] = to;
    table.Put(database, values);
  }
}

// What version 10 kept of a job in tables of their own.
struct PartsV10 {
  PartsV10(Database& database, int64_t version) {
    const auto rows_of = [&](const CheckedTable& table) {
      const std::vector<const CheckedTable*> there = store::TablesOf(version);
      return std::count(there.begin(), there.end(), &table) == 0 ? std::vector<SqlRow>()
                                                                 : table.Select(database);
    };
    for (const SqlRow& row : rows_of(store::PredictedRunTimesV10()))
      for (size_t i = 0; i < kQuantiles.size(); ++i) predicted[row.Int(0)][i] = row.Int(i + 1);
    for (const SqlRow& row : rows_of(store::ReservationYieldsV10()))
      yields[row.Int(0)] = static_cast<int>(row.Int(1));
    for (const SqlRow& row : rows_of(store::HoldsV10())) holds[row.Int(0)] = row.Text(1);
    for (const SqlRow& row : rows_of(store::MeasuredTimesV2()))
      measured[row.Int(0)] = {.checkpoint_ms = row.OptionalInt(1),
                              .restart_ms = row.OptionalInt(2)};
    for (const SqlRow& row : rows_of(store::MeasuredTimesV10()))
      measured[row.Int(0)] = {.checkpoint_ms = row.OptionalInt(1),
                              .restart_ms = row.OptionalInt(2),
                              .killed_after_ms = row.OptionalInt(3)};
    for (const SqlRow& row : rows_of(store::CollectionsV10()))
      collections[row.Int(0)] = {store::StateFrom(row.Text(1)), row.Int(2), row.Text(3)};
    for (const SqlRow& row : rows_of(store::ReservationsV10()))
      reservations[row.Int(0)] = store::PlacementFrom(row.Text(1));
  }

  void MoveTo(JobRecord& job) {
    job.run_time = predicted[job.id];
    job.reservation_yields = yields[job.id];
    job.held_by = holds[job.id];
    job.measured = measured[job.id];
    job.reservation = reservations[job.id];
    if (const auto at = collections.find(job.id); at != collections.end())
      job.collection = at->second;
  }

  std::map<JobId, RunTimeQuantiles> predicted;
  std::map<JobId, int> yields;
  std::map<JobId, std::string> holds;
  std::map<JobId, Measured> measured;
  std::map<JobId, Collection> collections;
  std::map<JobId, NamedPlacement> reservations;
};

// Until version 10, the table had the attempt that has not ended, too, and some facts followed from
// it.
void TakeAttempts(const std::vector<SqlRow>& rows, JobRecord& job) {
  job.waiting_since = job.submitted;
  for (const SqlRow& row : rows) {
    const AttemptRecord attempt = store::AttemptOf(row);
    job.attained_worker_ms += WorkerMs(attempt);
    if (attempt.ended)
      job.waiting_since = std::max(job.waiting_since, *attempt.ended);
    else if (!job.ended)
      job.attempt = attempt;
  }
}

}  // namespace

std::vector<std::string> store::SchemaOf(Database& database) {
  std::vector<std::string> definitions;
  // A daemon that was killed may have left the table of ReserveRoom().
  for (const SqlRow& row : database.Query("SELECT sql FROM sqlite_schema WHERE name != ?",
                                          {std::string(store::kRoomTable)}))
    definitions.push_back(row.Text(0));
  return definitions;
}

void store::MarkVersion(Database& database) {
  store::Facts().Put(database, {std::string(store::kSchemaFact), store::kSchemaVersion});
  database.Run(fmt::format("PRAGMA user_version = {}", store::kSchemaVersion));
}

// For a database that CheckContent() found valid.
void Store::Upgrade() {
  const int64_t version = database_->QueryOne("PRAGMA user_version").Int(0);
  if (version == store::kSchemaVersion) return;
  database_->Run("PRAGMA foreign_keys = OFF");  // impossible within a transaction
  database_->Transact([&] {
    database_->Run("PRAGMA legacy_alter_table = ON");  // other tables refer to jobs by its name
    database_->Run(fmt::format("ALTER TABLE jobs RENAME TO {}", kOldJobs));
    for (const char* index : {"jobs_by_end", "jobs_by_owner", "jobs_unfinished"})
      database_->Run(fmt::format("DROP INDEX IF EXISTS {}", index));
    const std::vector<std::string> there = store::SchemaOf(*database_);
    for (const std::string& definition : store::DefinitionsOf(store::kSchemaVersion))
      if (std::find(there.begin(), there.end(), definition) == there.end())
        database_->Run(definition);
    if (version < 11)
      MakeDocuments(version);
    else
      SplitTexts();
    if (version < 3) UpgradeToVersion3(version);
    if (version < 5) UpgradeToVersion5();
    if (version < 7) UpgradeToVersion7();
    if (version < 9) UpgradeToVersion9();
    const std::vector<const CheckedTable*> kept = store::TablesOf(store::kSchemaVersion);
    for (const CheckedTable* table : store::TablesOf(version))
      if (std::find(kept.begin(), kept.end(), table) == kept.end())
        database_->Run("DROP TABLE " + (table->name() == "jobs" ? kOldJobs : table->name()));
    store::MarkVersion(*database_);
  });
  database_->Run("PRAGMA foreign_keys = ON");
}

// Version 11 has one document of a job, where earlier ones had rows in up to nine tables.
void Store::MakeDocuments(int64_t from) {
  PartsV10 parts(*database_, from);
  const auto of = [&](const CheckedTable& table, JobId job) {
    return table.Select(*database_, "WHERE job = ?", {job});
  };
  for (const SqlRow& id : database_->Query("SELECT id FROM " + kOldJobs)) {
    JobRecord job = store::JobOfV10(
        database_->Query(fmt::format("SELECT * FROM {} WHERE id = ?", kOldJobs), {id.Int(0)})
            .at(0));
    const std::vector<SqlRow> attempts = of(store::Attempts(), job.id);
    const auto events = static_cast<int64_t>(of(store::Events(), job.id).size());
    if (from >= 3) {
      const std::vector<SqlRow> counts = of(store::RowCountsV10(), job.id);
      const auto found = [&](const CheckedTable& table) {
        return static_cast<int64_t>(of(table, job.id).size());
      };
      if (counts.empty() || counts[0].Int(1) != static_cast<int64_t>(attempts.size()) ||
          counts[0].Int(2) != events)
        throw CorruptDatabase(fmt::format("history of job {} is missing", job.id));
      if (counts[0].Int(3) != found(store::Usage()))
        throw CorruptDatabase(fmt::format("usage of job {} is missing", job.id));
      if (counts[0].Int(4) != found(store::MeasuredTimesV10()))
        throw CorruptDatabase(fmt::format("measured times of job {} are missing", job.id));
    }
    parts.MoveTo(job);
    store::CheckCollection(job);
    TakeAttempts(attempts, job);
    store::Jobs().Put(*database_, store::RowOf(job, events));
    store::JobTexts().Put(*database_, store::TextRowOf(job));
    if (of(store::Usage(), job.id).empty()) PutUsage(job.id, {});
    if (job.attempt)
      database_->Run("DELETE FROM attempts WHERE job = ? AND ended IS NULL", {job.id});
  }
}

// Version 12 writes a job's texts once, in a table of their own. A row that is damaged remains so:
// what it says is copied as it is, and neither new row has a checksum that matches.
void Store::SplitTexts() {
  for (const SqlRow& id : database_->Query("SELECT id FROM " + kOldJobs)) {
    const CheckedRow old = store::JobsV11().Check(
        database_->Query(fmt::format("SELECT * FROM {} WHERE id = ?", kOldJobs), {id.Int(0)})
            .at(0));
    if (!old.intact) {
      for (const char* copy :
           {"jobs SELECT id, CAST(queue AS TEXT), CAST(user AS TEXT), CAST(state AS TEXT), "
            "CAST(ended AS INTEGER), CAST(events AS INTEGER), CAST(document AS TEXT)",
            "job_texts SELECT id, CAST(spec AS TEXT), CAST(manifest AS TEXT)"})
        database_->Run(fmt::format("INSERT INTO {}, CAST(checksum AS TEXT) FROM {} WHERE id = ?",
                                   copy, kOldJobs),
                       {id.Int(0)});
      continue;
    }
    std::vector<SqlValue> row = old.row.values();
    const std::vector<SqlValue> texts = {id.Int(0), row[store::kSpecV11], row[store::kManifestV11]};
    row.erase(row.begin() + store::kSpecV11, row.begin() + store::kManifestV11 + 1);
    store::Jobs().Put(*database_, row);
    store::JobTexts().Put(*database_, texts);
  }
}

// Version 3 maintains sums that version 2 computed at every start, and renames the table of quota
// overrides and the word for failed nodes.
void Store::UpgradeToVersion3(int64_t from) {
  ReplaceText(*database_, store::Attempts(), kEndedByColumn, "node_lost", "node_failed");
  ReplaceText(*database_, store::Events(), kKindColumn, "node_lost", "node_failed");
  JobId last = Fact("last_forgotten_job").value_or(0);
  int64_t unfinished = 0;
  for (const SqlRow& row : store::Jobs().Select(*database_)) {
    const JobRecord job = store::JobOf(row);
    last = std::max(last, job.id);
    if (job.ended)
      CountEnded(job, 1, Usage(job.id));
    else
      ++unfinished;
  }
  store::Facts().Delete(*database_, "name", std::string("last_forgotten_job"));
  store::Facts().Put(*database_, {std::string(store::kLastJob), last});
  store::Facts().Put(*database_, {std::string(store::kUnfinishedJobs), unfinished});
  for (const SqlRow& row : store::QuotaOverridesV2().Select(*database_))
    store::QuotaOverrides().Put(*database_, row.values());
  if (from < 2) return;
  for (const SqlRow& row : store::UsageOfDeletedJobsV2().Select(*database_)) {
    JobRecord deleted;
    deleted.queue = row.Text(0);
    deleted.user = row.Text(1);
    deleted.state = RecordState::kDone;
    CountEnded(deleted, 0, {.gpu_seconds = row.Real(2), .cost = row.Real(3)});
  }
}

// Version 5 adds the run times of ended jobs, which outlive their deletion, and what was expected
// of the others when they were submitted.
void Store::UpgradeToVersion5() {
  std::vector<JobRecord> ended = EndedJobs({}, 2 * RunTimes::kGeneration);
  std::sort(ended.begin(), ended.end(), [](const JobRecord& a, const JobRecord& b) {
    return std::pair(*a.ended, a.id) < std::pair(*b.ended, b.id);
  });
  RunTimes known;
  auto next = ended.begin();
  const auto learn_until = [&](TimeMs time) {
    for (; next != ended.end() && *next->ended < time; ++next) {
      if (next->run_ms <= 0) continue;
      known.Add(TraitsOf(*next), next->run_ms);
      AddRunTime(TraitsOf(*next), next->run_ms);
    }
  };
  for (JobRecord& job : UnfinishedJobs()) {
    learn_until(job.submitted);
    job.run_time = known.Predict(TraitsOf(job));
    job.spec.clear();  // stays
    Put(job);
  }
  learn_until(kNever);
}

// Version 7 counts what earlier ones recorded as the reasons of stops only.
void Store::UpgradeToVersion7() {
  for (JobRecord& job : UnfinishedJobs()) {
    for (const AttemptRecord& attempt : Attempts(job.id))
      job.reservation_yields +=
          attempt.stop_reason == fmt::format("reservation for job {}", attempt.stopping_for);
    job.spec.clear();  // stays
    Put(job);
  }
}

}  // namespace renzan::cluster::local
