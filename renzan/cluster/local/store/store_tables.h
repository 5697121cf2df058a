#pragma once

// The store's tables and how records become rows. Internal to the store.

#include <string>
#include <vector>

#include "renzan/cluster/local/store/checked_table.h"
#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local::store {

// Increased with every change of a definition below. Store::Upgrade() converts older databases.
inline constexpr int64_t kSchemaVersion = 10;

// Facts.
inline constexpr const char* kSchemaFact = "schema_version";
inline constexpr const char* kAccountedUntil = "accounted_until";
// Since version 3. They reveal jobs that a corrupt index or page has lost.
inline constexpr const char* kLastJob = "last_job";
inline constexpr const char* kUnfinishedJobs = "unfinished_jobs";
inline constexpr const char* kUsageDatedSince = "usage_dated_since";  // since version 9

const CheckedTable& Jobs();
const CheckedTable& Attempts();
const CheckedTable& Events();
const CheckedTable& Nodes();
const CheckedTable& QuotaOverrides();
const CheckedTable& Usage();
const CheckedTable& Loans();
const CheckedTable& Facts();  // name, value
// Since version 2.
const CheckedTable& Reservations();
const CheckedTable& Pools();
// Since version 3.
const CheckedTable& MeasuredTimes();
// By queue, user and state: the number of ended jobs in the store, and the usage of all ended jobs,
// including deleted ones.
const CheckedTable& EndedSums();
const CheckedTable& Collections();
const CheckedTable& RowCounts();  // see row_counts.h
// Since version 5. See Store::AddRunTime() and JobRecord::run_time.
const CheckedTable& EndedRunTimes();
const CheckedTable& PredictedRunTimes();
const CheckedTable& PoolHoursV5();
// Since version 6.
const CheckedTable& EarlyFailures();  // see EarlyFailure
const CheckedTable& Closures();       // of nodes, other than by an operator
// Since version 7. Of jobs that have not ended: how often they were stopped for a reservation.
const CheckedTable& ReservationYields();
const CheckedTable& Holds();
// Since version 9; see UsageSpan.
const CheckedTable& UsageSpans();
// Since version 10; see UsedLatelyRecord.
const CheckedTable& UsedLately();
// The tables until version 2; only for upgrades.
const CheckedTable& JobsV2();
const CheckedTable& QuotaOverridesV2();
const CheckedTable& UsageOfDeletedJobsV2();  // summed by queue and user
const CheckedTable& MeasuredTimesV2();

// The tables of a version, in an order in which they can be created.
std::vector<const CheckedTable*> TablesOf(int64_t version);
// The statements that create the tables and indexes of a version, in order.
std::vector<std::string> DefinitionsOf(int64_t version);

std::vector<SqlValue> RowOf(const JobRecord& job);
std::vector<SqlValue> RowOf(const AttemptRecord& attempt);
// Throw CorruptDatabase.
JobRecord JobOf(const SqlRow& row);
AttemptRecord AttemptOf(const SqlRow& row);

}  // namespace renzan::cluster::local::store
