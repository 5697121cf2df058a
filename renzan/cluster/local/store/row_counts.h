#pragma once

// How many rows belong to each job. A checksum says nothing about a row that is not there: a
// corrupt page can lose some, which reads like a job with a shorter history. Internal to the store;
// what changes counts is called within a transaction.

#include <cstddef>

#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/local/store/sqlite.h"

namespace renzan::cluster::local::store {

// Columns of RowCounts().
enum class Counted { kAttempts = 1, kEvents, kUsage, kMeasured };

// A new job, of which there is nothing yet.
void BeginCounting(Database& database, JobId job);
// `what` of the job has at least so many rows from now on.
void ExpectRows(Database& database, JobId job, Counted what, int64_t at_least);
int64_t RowsOf(Database& database, JobId job, Counted what);
// Throws CorruptDatabase if `found` are not all there are.
void CheckRows(Database& database, JobId job, Counted what, size_t found);
// Throws CorruptDatabase if there has been a job of that number that is not forgotten.
void CheckNoJob(Database& database, JobId job);

}  // namespace renzan::cluster::local::store
