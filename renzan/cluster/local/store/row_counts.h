#pragma once

// The number of rows of each job. Checksums do not detect missing rows: if a corrupt page loses
// some, the job merely seems to have a shorter history. Internal to the store; functions that
// change counts are called within a transaction.

#include <cstddef>

#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/local/store/sqlite.h"

namespace renzan::cluster::local::store {

// Columns of RowCounts().
enum class Counted { kAttempts = 1, kEvents, kUsage, kMeasured };

// For a new job, without any rows.
void BeginCounting(Database& database, JobId job);
// From now on the job has at least this many rows of that kind.
void ExpectRows(Database& database, JobId job, Counted what, int64_t at_least);
int64_t RowsOf(Database& database, JobId job, Counted what);
// Throws CorruptDatabase if `found` is not the number of rows.
void CheckRows(Database& database, JobId job, Counted what, size_t found);
// Throws CorruptDatabase if the store has counts of that job: then its row has been lost.
void CheckNoJob(Database& database, JobId job);

}  // namespace renzan::cluster::local::store
