#pragma once

// The store's tables and how records become rows. Internal to the store.

#include <string>
#include <vector>

#include "renzan/cluster/local/store/checked_table.h"
#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local::store {

// Increased with every change of a definition below. Store::Upgrade() converts older databases.
inline constexpr int64_t kSchemaVersion = 12;

// Facts.
inline constexpr const char* kSchemaFact = "schema_version";
inline constexpr const char* kAccountedUntil = "accounted_until";
// They reveal jobs that a corrupt index or page has lost.
inline constexpr const char* kLastJob = "last_job";
inline constexpr const char* kUnfinishedJobs = "unfinished_jobs";
inline constexpr const char* kUsageDatedSince = "usage_dated_since";

// A job is one row: what queries need, the number of its events, and a document of everything else
// (RowOf()), all of which each transition writes again. Its texts are a row of their own because
// they may be large and hardly ever change. Its other rows are history, which is never changed, and
// usage: a row of its own, because that of all running jobs grows with each transition.
const CheckedTable& Jobs();
const CheckedTable& JobTexts();  // specification and manifest
const CheckedTable& Attempts();  // that have ended
const CheckedTable& Events();
const CheckedTable& Usage();
const CheckedTable& Nodes();
const CheckedTable& Closures();  // of nodes, other than by an operator
const CheckedTable& Pools();
const CheckedTable& QuotaOverrides();
const CheckedTable& Loans();
const CheckedTable& Facts();  // name, value
// By queue, user and state: the number of ended jobs in the store, and the usage of all ended jobs,
// including deleted ones.
const CheckedTable& EndedSums();
const CheckedTable& EndedRunTimes();  // see Store::AddRunTime()
const CheckedTable& EarlyFailures();  // see EarlyFailure
const CheckedTable& UsageSpans();     // see UsageSpan
const CheckedTable& UsedLately();     // see UsedLatelyRecord
// What rows of jobs said that were found damaged and have been replaced: one row for each of their
// columns.
const CheckedTable& Damaged();

// Of versions from 1 on (old_tables.cc), in an order in which they can be created.
std::vector<const CheckedTable*> TablesOf(int64_t version);
// The statements that create the tables and indexes of a version, in order.
std::vector<std::string> DefinitionsOf(int64_t version);

// As they are in the database.
std::vector<std::string> SchemaOf(Database& database);
void MarkVersion(Database& database);

// Columns of Jobs(), and of JobTexts().
inline constexpr size_t kEvents = 5, kDocument = 6, kSpec = 1, kManifest = 2;

std::vector<SqlValue> RowOf(const JobRecord& job, int64_t events);
std::vector<SqlValue> TextRowOf(const JobRecord& job);
std::vector<SqlValue> RowOf(const AttemptRecord& attempt);
// Throw CorruptDatabase.
JobRecord JobOf(const SqlRow& row);          // without its texts
void CheckCollection(const JobRecord& job);  // a job that collects has one
AttemptRecord AttemptOf(const SqlRow& row);
RecordState StateFrom(const std::string& name);
NamedPlacement PlacementFrom(const std::string& text);

}  // namespace renzan::cluster::local::store
