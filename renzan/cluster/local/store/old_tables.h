#pragma once

// Tables that earlier versions had, named after the last one; only for upgrades.

#include "renzan/cluster/local/store/checked_table.h"
#include "renzan/cluster/local/store/records.h"

namespace renzan::cluster::local::store {

inline constexpr const char* kOfAJob = "FOREIGN KEY (job) REFERENCES jobs (id)";
inline constexpr const char* kQuotaOverrideColumns =
    "user TEXT NOT NULL, until INTEGER NOT NULL, max_gpus INTEGER NOT NULL";

const CheckedTable& JobsV2();
const CheckedTable& JobsV10();
const CheckedTable& JobsV11();
const CheckedTable& QuotaOverridesV2();
const CheckedTable& UsageOfDeletedJobsV2();  // summed by queue and user
const CheckedTable& MeasuredTimesV2();
const CheckedTable& MeasuredTimesV10();
const CheckedTable& CollectionsV10();
const CheckedTable& RowCountsV10();  // of a job in other tables
const CheckedTable& ReservationsV10();
const CheckedTable& PredictedRunTimesV10();
const CheckedTable& PoolHoursV8();  // nodes in use by hour of the week
const CheckedTable& ReservationYieldsV10();
const CheckedTable& HoldsV10();

// A row of JobsV2() or JobsV10().
JobRecord JobOfV10(const SqlRow& row);
// Columns of JobsV11(): the others are those of Jobs().
inline constexpr size_t kSpecV11 = 5, kManifestV11 = 6;

}  // namespace renzan::cluster::local::store
