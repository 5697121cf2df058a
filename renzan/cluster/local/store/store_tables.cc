#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local::store {
namespace {

template <typename T>
T Expect(std::optional<T> value, const char* what) {
  if (!value) throw CorruptDatabase(fmt::format("unknown {}", what));
  return *value;
}

std::optional<int> OptionalCode(const SqlRow& row, size_t column) {
  if (row.IsNull(column)) return std::nullopt;
  return static_cast<int>(row.Int(column));
}

SqlValue CodeOf(const std::optional<int>& code) {
  return code ? SqlValue(int64_t{*code}) : SqlValue();
}

std::vector<std::string> QuotaOverrideColumns() {
  return {"user TEXT NOT NULL", "until INTEGER NOT NULL", "max_gpus INTEGER NOT NULL"};
}

// `requeues` is the name of that column, which version 3 changed.
std::vector<std::string> JobColumns(const std::string& requeues) {
  return {"id INTEGER NOT NULL",
          "name TEXT NOT NULL",
          "queue TEXT NOT NULL",
          "spec TEXT NOT NULL",
          "source TEXT NOT NULL",
          "submit_dir TEXT NOT NULL",
          "user TEXT NOT NULL",
          "uid INTEGER NOT NULL",
          "gid INTEGER NOT NULL",
          "priority INTEGER NOT NULL",
          "min_workers INTEGER NOT NULL",
          "max_workers INTEGER NOT NULL",
          "cpu_millis INTEGER NOT NULL",
          "memory_mib INTEGER NOT NULL",
          "gpus INTEGER NOT NULL",
          "state TEXT NOT NULL",
          "submitted INTEGER NOT NULL",
          "eligible_at INTEGER NOT NULL",
          "attempts INTEGER NOT NULL",
          "failures INTEGER NOT NULL",
          "preemptions INTEGER NOT NULL",
          requeues + " INTEGER NOT NULL",
          "run_ms INTEGER NOT NULL",
          "last_resize INTEGER NOT NULL",
          "cancel_requested INTEGER NOT NULL",
          "started INTEGER",
          "ended INTEGER",
          "exit_code INTEGER",
          "message TEXT NOT NULL",
          "manifest TEXT NOT NULL"};
}

}  // namespace

const CheckedTable& Jobs() {
  static const CheckedTable table("jobs", JobColumns("requeues"), 1);
  return table;
}

const CheckedTable& JobsV2() {
  static const CheckedTable table("jobs", JobColumns("setbacks"), 1);
  return table;
}

const CheckedTable& Attempts() {
  static const CheckedTable table(
      "attempts",
      {"job INTEGER NOT NULL", "number INTEGER NOT NULL", "placement TEXT NOT NULL",
       "target TEXT NOT NULL", "started INTEGER NOT NULL", "backfilled INTEGER NOT NULL",
       "stop_reason TEXT NOT NULL", "stopping_for INTEGER NOT NULL", "ended INTEGER",
       "exit_code INTEGER", "ended_by TEXT NOT NULL", "message TEXT NOT NULL"},
      2, "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& Events() {
  static const CheckedTable table(
      "events",
      {"job INTEGER NOT NULL", "number INTEGER NOT NULL", "time INTEGER NOT NULL",
       "kind TEXT NOT NULL", "text TEXT NOT NULL"},
      2, "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& Nodes() {
  static const CheckedTable table(
      "nodes",
      {"name TEXT NOT NULL", "pool TEXT NOT NULL", "state TEXT NOT NULL", "until INTEGER NOT NULL"},
      1);
  return table;
}

const CheckedTable& QuotaOverrides() {
  static const CheckedTable table("quota_overrides", QuotaOverrideColumns(), 2);
  return table;
}

const CheckedTable& QuotaOverridesV2() {
  static const CheckedTable table("relaxations", QuotaOverrideColumns(), 2);
  return table;
}

const CheckedTable& Usage() {
  static const CheckedTable table(
      "usage", {"job INTEGER NOT NULL", "gpu_seconds REAL NOT NULL", "cost REAL NOT NULL"}, 1,
      "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& Loans() {
  static const CheckedTable table(
      "loans", {"lender TEXT NOT NULL", "borrower TEXT NOT NULL", "gpu_seconds REAL NOT NULL"}, 2);
  return table;
}

const CheckedTable& Facts() {
  static const CheckedTable table("facts", {"name TEXT NOT NULL", "value INTEGER NOT NULL"}, 1);
  return table;
}

const CheckedTable& UsageOfDeletedJobsV2() {
  static const CheckedTable table("forgotten_usage",
                                  {"queue TEXT NOT NULL", "user TEXT NOT NULL",
                                   "gpu_seconds REAL NOT NULL", "cost REAL NOT NULL"},
                                  2);
  return table;
}

const CheckedTable& MeasuredTimesV2() {
  static const CheckedTable table(
      "measured", {"job INTEGER NOT NULL", "checkpoint_ms INTEGER", "restart_ms INTEGER"}, 1,
      "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& MeasuredTimes() {
  static const CheckedTable table("measured_times",
                                  {"job INTEGER NOT NULL", "checkpoint_ms INTEGER",
                                   "restart_ms INTEGER", "killed_after_ms INTEGER"},
                                  1, "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& EndedSums() {
  static const CheckedTable table(
      "ended_sums",
      {"queue TEXT NOT NULL", "user TEXT NOT NULL", "state TEXT NOT NULL", "jobs INTEGER NOT NULL",
       "gpu_seconds REAL NOT NULL", "cost REAL NOT NULL"},
      3);
  return table;
}

const CheckedTable& Collections() {
  static const CheckedTable table("collections",
                                  {"job INTEGER NOT NULL", "becomes TEXT NOT NULL",
                                   "ended INTEGER NOT NULL", "text TEXT NOT NULL"},
                                  1, "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& RowCounts() {
  static const CheckedTable table(
      "row_counts",
      {"job INTEGER NOT NULL", "attempts INTEGER NOT NULL", "events INTEGER NOT NULL",
       "usage INTEGER NOT NULL", "measured INTEGER NOT NULL"},
      1, "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& Reservations() {
  static const CheckedTable table("reservations",
                                  {"job INTEGER NOT NULL", "placement TEXT NOT NULL"}, 1,
                                  "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& EndedRunTimes() {
  static const CheckedTable table(
      "ended_run_times",
      {"number INTEGER NOT NULL", "queue TEXT NOT NULL", "user TEXT NOT NULL", "name TEXT NOT NULL",
       "size INTEGER NOT NULL", "ran_ms INTEGER NOT NULL"},
      1);
  return table;
}

const CheckedTable& PredictedRunTimes() {
  static const CheckedTable table(
      "predicted_run_times",
      {"job INTEGER NOT NULL", "p10_ms INTEGER NOT NULL", "p25_ms INTEGER NOT NULL",
       "p50_ms INTEGER NOT NULL", "p75_ms INTEGER NOT NULL", "p90_ms INTEGER NOT NULL"},
      1, "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& PoolHoursV5() {
  static const CheckedTable table(
      "pool_hours", {"pool TEXT NOT NULL", "hour INTEGER NOT NULL", "nodes INTEGER NOT NULL"}, 2);
  return table;
}

const CheckedTable& EarlyFailures() {
  static const CheckedTable table(
      "early_failures",
      {"job INTEGER NOT NULL", "node TEXT NOT NULL", "user TEXT NOT NULL", "time INTEGER NOT NULL",
       "counts INTEGER NOT NULL", "ran_elsewhere INTEGER NOT NULL"},
      2);
  return table;
}

const CheckedTable& Closures() {
  static const CheckedTable table(
      "closures", {"node TEXT NOT NULL", "by TEXT NOT NULL", "reason TEXT NOT NULL"}, 1);
  return table;
}

const CheckedTable& ReservationYields() {
  static const CheckedTable table("reservation_yields",
                                  {"job INTEGER NOT NULL", "yields INTEGER NOT NULL"}, 1,
                                  "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& Holds() {
  static const CheckedTable table("holds", {"job INTEGER NOT NULL", "by TEXT NOT NULL"}, 1,
                                  "FOREIGN KEY (job) REFERENCES jobs (id)");
  return table;
}

const CheckedTable& UsageSpans() {
  static const CheckedTable table(
      "usage_spans",
      {"job INTEGER NOT NULL", "attempt INTEGER NOT NULL", "queue TEXT NOT NULL",
       "user TEXT NOT NULL", "started INTEGER NOT NULL", "ended INTEGER NOT NULL",
       "gpu_seconds REAL NOT NULL", "cost REAL NOT NULL"},
      2);
  return table;
}

const CheckedTable& UsedLately() {
  static const CheckedTable table(
      "used_lately",
      {"queue TEXT NOT NULL", "user TEXT NOT NULL", "kind TEXT NOT NULL", "seconds REAL NOT NULL",
       "as_of INTEGER NOT NULL"},
      3);
  return table;
}

const CheckedTable& Pools() {
  static const CheckedTable table(
      "pools", {"name TEXT NOT NULL", "node_ms INTEGER NOT NULL", "interruptions INTEGER NOT NULL"},
      1);
  return table;
}

std::vector<const CheckedTable*> TablesOf(int64_t version) {
  const bool old = version < 3;
  std::vector<const CheckedTable*> tables = {old ? &JobsV2() : &Jobs(),
                                             &Attempts(),
                                             &Events(),
                                             &Nodes(),
                                             old ? &QuotaOverridesV2() : &QuotaOverrides(),
                                             &Usage(),
                                             &Loans(),
                                             &Facts()};
  if (version >= 2) tables.push_back(&Pools());
  if (version == 2) tables.insert(tables.end(), {&UsageOfDeletedJobsV2(), &MeasuredTimesV2()});
  if (version >= 3)
    tables.insert(tables.end(), {&MeasuredTimes(), &EndedSums(), &Collections(), &RowCounts()});
  if (version >= 4) tables.push_back(&Reservations());
  if (version >= 5) tables.insert(tables.end(), {&EndedRunTimes(), &PredictedRunTimes()});
  if (version >= 5 && version < 9) tables.push_back(&PoolHoursV5());
  if (version >= 6) tables.insert(tables.end(), {&EarlyFailures(), &Closures()});
  if (version >= 7) tables.push_back(&ReservationYields());
  if (version >= 8) tables.push_back(&Holds());
  if (version >= 9) tables.push_back(&UsageSpans());
  if (version >= 10) tables.push_back(&UsedLately());
  return tables;
}

std::vector<std::string> DefinitionsOf(int64_t version) {
  std::vector<std::string> definitions;
  for (const CheckedTable* table : TablesOf(version)) definitions.push_back(table->definition());
  definitions.push_back("CREATE INDEX jobs_by_end ON jobs (ended)");
  if (version >= 2)
    definitions.push_back("CREATE INDEX jobs_by_owner ON jobs (queue, user, state, ended)");
  if (version >= 3)
    definitions.push_back("CREATE INDEX jobs_unfinished ON jobs (state) WHERE ended IS NULL");
  if (version >= 9)
    definitions.push_back("CREATE INDEX usage_spans_by_end ON usage_spans (ended, job, attempt)");
  return definitions;
}

std::vector<SqlValue> RowOf(const JobRecord& job) {
  return {job.id,
          job.name,
          job.queue,
          job.spec,
          job.source,
          job.submit_dir,
          job.user,
          int64_t{job.uid},
          int64_t{job.gid},
          int64_t{job.priority},
          int64_t{job.min_workers},
          int64_t{job.max_workers},
          job.cpu_millis,
          job.memory_mib,
          job.gpus,
          std::string(NameOf(job.state)),
          job.submitted,
          job.eligible_at,
          int64_t{job.attempts},
          int64_t{job.failures},
          int64_t{job.preemptions},
          int64_t{job.requeues},
          job.run_ms,
          job.last_resize,
          int64_t{job.cancel_requested},
          ToSql(job.first_started),
          ToSql(job.ended),
          CodeOf(job.exit_code),
          job.message,
          job.manifest};
}

JobRecord JobOf(const SqlRow& row) {
  size_t column = 0;
  const auto number = [&] { return row.Int(column++); };
  const auto small = [&] { return static_cast<int>(row.Int(column++)); };
  const auto text = [&] { return row.Text(column++); };
  JobRecord job;
  job.id = number();
  job.name = text();
  job.queue = text();
  job.spec = text();
  job.source = text();
  job.submit_dir = text();
  job.user = text();
  job.uid = static_cast<uid_t>(number());
  job.gid = static_cast<gid_t>(number());
  job.priority = small();
  job.min_workers = small();
  job.max_workers = small();
  job.cpu_millis = number();
  job.memory_mib = number();
  job.gpus = number();
  job.state = Expect(RecordStateNamed(text()), "state of a job");
  job.submitted = number();
  job.eligible_at = number();
  job.attempts = small();
  job.failures = small();
  job.preemptions = small();
  job.requeues = small();
  job.run_ms = number();
  job.last_resize = number();
  job.cancel_requested = number() != 0;
  job.first_started = row.OptionalInt(column++);
  job.ended = row.OptionalInt(column++);
  job.exit_code = OptionalCode(row, column++);
  job.message = text();
  job.manifest = text();
  return job;
}

std::vector<SqlValue> RowOf(const AttemptRecord& attempt) {
  return {attempt.job,
          int64_t{attempt.number},
          PrintPlacement(attempt.placement),
          PrintPlacement(attempt.target),
          attempt.started,
          int64_t{attempt.backfilled},
          attempt.stop_reason,
          attempt.stopping_for,
          ToSql(attempt.ended),
          CodeOf(attempt.exit_code),
          attempt.ended_by,
          attempt.message};
}

AttemptRecord AttemptOf(const SqlRow& row) {
  AttemptRecord attempt;
  attempt.job = row.Int(0);
  attempt.number = static_cast<int>(row.Int(1));
  attempt.placement = Expect(ParsePlacement(row.Text(2)), "placement of an attempt");
  attempt.target = Expect(ParsePlacement(row.Text(3)), "placement of an attempt");
  attempt.started = row.Int(4);
  attempt.backfilled = row.Int(5) != 0;
  attempt.stop_reason = row.Text(6);
  attempt.stopping_for = row.Int(7);
  attempt.ended = row.OptionalInt(8);
  attempt.exit_code = OptionalCode(row, 9);
  attempt.ended_by = row.Text(10);
  attempt.message = row.Text(11);
  return attempt;
}

}  // namespace renzan::cluster::local::store
