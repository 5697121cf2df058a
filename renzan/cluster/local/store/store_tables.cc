#include "renzan/cluster/local/store/store_tables.h"

#include "renzan/cluster/local/store/old_tables.h"

namespace renzan::cluster::local::store {

const CheckedTable& Jobs() {
  static const CheckedTable table(
      "jobs",
      "id INTEGER NOT NULL, queue TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, "
      "ended INTEGER, events INTEGER NOT NULL, document TEXT NOT NULL",
      1);
  return table;
}

const CheckedTable& JobTexts() {
  static const CheckedTable table(
      "job_texts", "job INTEGER NOT NULL, spec TEXT NOT NULL, manifest TEXT NOT NULL", 1, kOfAJob);
  return table;
}

const CheckedTable& Damaged() {
  static const CheckedTable table("damaged",
                                  "job INTEGER NOT NULL, row_of TEXT NOT NULL, part TEXT NOT NULL, "
                                  "found INTEGER NOT NULL, value TEXT",
                                  3);
  return table;
}

const CheckedTable& Attempts() {
  static const CheckedTable table(
      "attempts",
      "job INTEGER NOT NULL, number INTEGER NOT NULL, placement TEXT NOT NULL, "
      "target TEXT NOT NULL, started INTEGER NOT NULL, backfilled INTEGER NOT NULL, "
      "stop_reason TEXT NOT NULL, stopping_for INTEGER NOT NULL, ended INTEGER, "
      "exit_code INTEGER, ended_by TEXT NOT NULL, message TEXT NOT NULL",
      2, kOfAJob);
  return table;
}

const CheckedTable& Events() {
  static const CheckedTable table(
      "events",
      "job INTEGER NOT NULL, number INTEGER NOT NULL, time INTEGER NOT NULL, kind TEXT NOT NULL, "
      "text TEXT NOT NULL",
      2, kOfAJob);
  return table;
}

const CheckedTable& Nodes() {
  static const CheckedTable table(
      "nodes",
      "name TEXT NOT NULL, pool TEXT NOT NULL, state TEXT NOT NULL, until INTEGER NOT NULL", 1);
  return table;
}

const CheckedTable& QuotaOverrides() {
  static const CheckedTable table("quota_overrides", kQuotaOverrideColumns, 2);
  return table;
}

const CheckedTable& Usage() {
  static const CheckedTable table(
      "usage", "job INTEGER NOT NULL, gpu_seconds REAL NOT NULL, cost REAL NOT NULL", 1, kOfAJob);
  return table;
}

const CheckedTable& Loans() {
  static const CheckedTable table(
      "loans", "lender TEXT NOT NULL, borrower TEXT NOT NULL, gpu_seconds REAL NOT NULL", 2);
  return table;
}

const CheckedTable& Facts() {
  static const CheckedTable table("facts", "name TEXT NOT NULL, value INTEGER NOT NULL", 1);
  return table;
}

const CheckedTable& EndedSums() {
  static const CheckedTable table(
      "ended_sums",
      "queue TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, jobs INTEGER NOT NULL, "
      "gpu_seconds REAL NOT NULL, cost REAL NOT NULL",
      3);
  return table;
}

const CheckedTable& EndedRunTimes() {
  static const CheckedTable table(
      "ended_run_times",
      "number INTEGER NOT NULL, queue TEXT NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL, "
      "size INTEGER NOT NULL, ran_ms INTEGER NOT NULL",
      1);
  return table;
}

const CheckedTable& EarlyFailures() {
  static const CheckedTable table(
      "early_failures",
      "job INTEGER NOT NULL, node TEXT NOT NULL, user TEXT NOT NULL, time INTEGER NOT NULL, "
      "counts INTEGER NOT NULL, ran_elsewhere INTEGER NOT NULL",
      2);
  return table;
}

const CheckedTable& Closures() {
  static const CheckedTable table("closures",
                                  "node TEXT NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL", 1);
  return table;
}

const CheckedTable& UsageSpans() {
  static const CheckedTable table(
      "usage_spans",
      "job INTEGER NOT NULL, attempt INTEGER NOT NULL, queue TEXT NOT NULL, user TEXT NOT NULL, "
      "started INTEGER NOT NULL, ended INTEGER NOT NULL, gpu_seconds REAL NOT NULL, "
      "cost REAL NOT NULL",
      2);
  return table;
}

const CheckedTable& UsedLately() {
  static const CheckedTable table(
      "used_lately",
      "queue TEXT NOT NULL, user TEXT NOT NULL, kind TEXT NOT NULL, seconds REAL NOT NULL, "
      "as_of INTEGER NOT NULL",
      3);
  return table;
}

const CheckedTable& Pools() {
  static const CheckedTable table(
      "pools", "name TEXT NOT NULL, node_ms INTEGER NOT NULL, interruptions INTEGER NOT NULL", 1);
  return table;
}

std::vector<const CheckedTable*> TablesOf(int64_t version) {
  struct Known {
    const CheckedTable* table;
    int64_t first, last;  // versions
  };
  constexpr int64_t kNow = kSchemaVersion;
  static const std::vector<Known> known = {{&JobsV2(), 1, 2},
                                           {&JobsV10(), 3, 10},
                                           {&JobsV11(), 11, 11},
                                           {&Jobs(), 12, kNow},
                                           {&JobTexts(), 12, kNow},
                                           {&Attempts(), 1, kNow},
                                           {&Events(), 1, kNow},
                                           {&Nodes(), 1, kNow},
                                           {&QuotaOverridesV2(), 1, 2},
                                           {&QuotaOverrides(), 3, kNow},
                                           {&Usage(), 1, kNow},
                                           {&Loans(), 1, kNow},
                                           {&Facts(), 1, kNow},
                                           {&Pools(), 2, kNow},
                                           {&UsageOfDeletedJobsV2(), 2, 2},
                                           {&MeasuredTimesV2(), 2, 2},
                                           {&MeasuredTimesV10(), 3, 10},
                                           {&EndedSums(), 3, kNow},
                                           {&CollectionsV10(), 3, 10},
                                           {&RowCountsV10(), 3, 10},
                                           {&ReservationsV10(), 4, 10},
                                           {&EndedRunTimes(), 5, kNow},
                                           {&PredictedRunTimesV10(), 5, 10},
                                           {&PoolHoursV8(), 5, 8},
                                           {&EarlyFailures(), 6, kNow},
                                           {&Closures(), 6, kNow},
                                           {&ReservationYieldsV10(), 7, 10},
                                           {&HoldsV10(), 8, 10},
                                           {&UsageSpans(), 9, kNow},
                                           {&UsedLately(), 10, kNow},
                                           {&Damaged(), 12, kNow}};
  std::vector<const CheckedTable*> tables;
  for (const auto& [table, first, last] : known)
    if (first <= version && version <= last) tables.push_back(table);
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

}  // namespace renzan::cluster::local::store
