#pragma once

// The store's tables and how records become rows. Internal to the store.

#include <string>
#include <vector>

#include "renzan/cluster/local/store/checked_table.h"
#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local::store {

// Raised with every change of a definition below; Store::Upgrade brings what an older one wrote up
// to date.
inline constexpr int64_t kSchemaVersion = 3;

// Facts.
inline constexpr const char* kSchemaFact = "schema_version";
inline constexpr const char* kAccountedUntil = "accounted_until";
// Since version 3. A job that an index or a page has lost is missed by its number.
inline constexpr const char* kLastJob = "last_job";
inline constexpr const char* kUnfinishedJobs = "unfinished_jobs";

const CheckedTable& Jobs();
const CheckedTable& Attempts();
const CheckedTable& Events();
const CheckedTable& Nodes();
const CheckedTable& QuotaOverrides();
const CheckedTable& Usage();
const CheckedTable& Loans();
const CheckedTable& Facts();  // name, value
// Since version 2.
const CheckedTable& Pools();
// Since version 3.
const CheckedTable& MeasuredTimes();
const CheckedTable& EndedSums();  // by queue, user and state: how many are kept; usage of all ever
const CheckedTable& Collections();
const CheckedTable& RowCounts();  // of each job: see row_counts.h
// Of version 2 only.
const CheckedTable& ForgottenUsage();  // summed by queue and user
const CheckedTable& MeasuredTimes2();

// Those of a version, in an order in which they can be created.
std::vector<const CheckedTable*> TablesOf(int64_t version);
// What creates the tables and indexes of a version, in order.
std::vector<std::string> DefinitionsOf(int64_t version);

std::vector<SqlValue> RowOf(const JobRecord& job);
std::vector<SqlValue> RowOf(const AttemptRecord& attempt);
// Throw CorruptDatabase.
JobRecord JobOf(const SqlRow& row);
AttemptRecord AttemptOf(const SqlRow& row);

}  // namespace renzan::cluster::local::store
