#include "renzan/cluster/local/store/old_tables.h"

#include <fmt/format.h>

#include "renzan/cluster/local/store/store_tables.h"

namespace renzan::cluster::local::store {
namespace {

// `requeues` is the name of that column, which version 3 changed.
std::string JobColumns(const std::string& requeues) {
  return fmt::format(
      "id INTEGER NOT NULL, name TEXT NOT NULL, queue TEXT NOT NULL, spec TEXT NOT NULL, "
      "source TEXT NOT NULL, submit_dir TEXT NOT NULL, user TEXT NOT NULL, uid INTEGER NOT NULL, "
      "gid INTEGER NOT NULL, priority INTEGER NOT NULL, min_workers INTEGER NOT NULL, "
      "max_workers INTEGER NOT NULL, cpu_millis INTEGER NOT NULL, memory_mib INTEGER NOT NULL, "
      "gpus INTEGER NOT NULL, state TEXT NOT NULL, submitted INTEGER NOT NULL, "
      "eligible_at INTEGER NOT NULL, attempts INTEGER NOT NULL, failures INTEGER NOT NULL, "
      "preemptions INTEGER NOT NULL, {} INTEGER NOT NULL, run_ms INTEGER NOT NULL, "
      "last_resize INTEGER NOT NULL, cancel_requested INTEGER NOT NULL, started INTEGER, "
      "ended INTEGER, exit_code INTEGER, message TEXT NOT NULL, manifest TEXT NOT NULL",
      requeues);
}

}  // namespace

const CheckedTable& JobsV2() {
  static const CheckedTable table("jobs", JobColumns("setbacks"), 1);
  return table;
}

const CheckedTable& JobsV10() {
  static const CheckedTable table("jobs", JobColumns("requeues"), 1);
  return table;
}

const CheckedTable& QuotaOverridesV2() {
  static const CheckedTable table("relaxations", kQuotaOverrideColumns, 2);
  return table;
}

const CheckedTable& UsageOfDeletedJobsV2() {
  static const CheckedTable table(
      "forgotten_usage",
      "queue TEXT NOT NULL, user TEXT NOT NULL, gpu_seconds REAL NOT NULL, cost REAL NOT NULL", 2);
  return table;
}

const CheckedTable& MeasuredTimesV2() {
  static const CheckedTable table(
      "measured", "job INTEGER NOT NULL, checkpoint_ms INTEGER, restart_ms INTEGER", 1, kOfAJob);
  return table;
}

const CheckedTable& MeasuredTimesV10() {
  static const CheckedTable table("measured_times",
                                  "job INTEGER NOT NULL, checkpoint_ms INTEGER, "
                                  "restart_ms INTEGER, killed_after_ms INTEGER",
                                  1, kOfAJob);
  return table;
}

const CheckedTable& CollectionsV10() {
  static const CheckedTable table("collections",
                                  "job INTEGER NOT NULL, becomes TEXT NOT NULL, "
                                  "ended INTEGER NOT NULL, text TEXT NOT NULL",
                                  1, kOfAJob);
  return table;
}

const CheckedTable& RowCountsV10() {
  static const CheckedTable table(
      "row_counts",
      "job INTEGER NOT NULL, attempts INTEGER NOT NULL, events INTEGER NOT NULL, "
      "usage INTEGER NOT NULL, measured INTEGER NOT NULL",
      1, kOfAJob);
  return table;
}

const CheckedTable& ReservationsV10() {
  static const CheckedTable table("reservations", "job INTEGER NOT NULL, placement TEXT NOT NULL",
                                  1, kOfAJob);
  return table;
}

const CheckedTable& PredictedRunTimesV10() {
  static const CheckedTable table(
      "predicted_run_times",
      "job INTEGER NOT NULL, p10_ms INTEGER NOT NULL, p25_ms INTEGER NOT NULL, "
      "p50_ms INTEGER NOT NULL, p75_ms INTEGER NOT NULL, p90_ms INTEGER NOT NULL",
      1, kOfAJob);
  return table;
}

const CheckedTable& PoolHoursV8() {
  static const CheckedTable table(
      "pool_hours", "pool TEXT NOT NULL, hour INTEGER NOT NULL, nodes INTEGER NOT NULL", 2);
  return table;
}

const CheckedTable& ReservationYieldsV10() {
  static const CheckedTable table("reservation_yields",
                                  "job INTEGER NOT NULL, yields INTEGER NOT NULL", 1, kOfAJob);
  return table;
}

const CheckedTable& HoldsV10() {
  static const CheckedTable table("holds", "job INTEGER NOT NULL, by TEXT NOT NULL", 1, kOfAJob);
  return table;
}

const CheckedTable& JobsV11() {
  static const CheckedTable table(
      "jobs",
      "id INTEGER NOT NULL, queue TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, "
      "ended INTEGER, spec TEXT NOT NULL, manifest TEXT NOT NULL, events INTEGER NOT NULL, "
      "document TEXT NOT NULL",
      1);
  return table;
}

JobRecord JobOfV10(const SqlRow& row) {
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
  job.state = StateFrom(text());
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
  if (const auto code = row.OptionalInt(column++)) job.exit_code = static_cast<int>(*code);
  job.message = text();
  job.manifest = text();
  return job;
}

}  // namespace renzan::cluster::local::store
