#pragma once

// The store's tables and how records become rows. Internal to the store.

#include <string>
#include <vector>

#include "renzan/cluster/local/checked_table.h"
#include "renzan/cluster/local/records.h"

namespace renzan::cluster::local::store {

// Raised with every change of a definition below. A new version may have tables that the one before
// did not; a table that changed would need to be copied by Store::Upgrade.
inline constexpr int64_t kSchemaVersion = 2;

const CheckedTable& Jobs();
const CheckedTable& Attempts();
const CheckedTable& Events();
const CheckedTable& Nodes();
const CheckedTable& Relaxations();
const CheckedTable& Usage();
const CheckedTable& Loans();
const CheckedTable& Facts();  // name, value
// Since version 2.
const CheckedTable& ForgottenUsage();  // summed by queue and user
const CheckedTable& MeasuredTimes();
const CheckedTable& Pools();

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
