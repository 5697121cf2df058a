#pragma once

// The store's tables and how records become rows. Internal to the store.

#include <string>
#include <vector>

#include "renzan/cluster/local/checked_table.h"
#include "renzan/cluster/local/records.h"

namespace renzan::cluster::store {

// Raised with every change of a definition below.
inline constexpr int64_t kSchemaVersion = 1;

const CheckedTable& Jobs();
const CheckedTable& Attempts();
const CheckedTable& Events();
const CheckedTable& Nodes();
const CheckedTable& Relaxations();
const CheckedTable& Usage();
const CheckedTable& Loans();
const CheckedTable& Facts();  // name, value

// In an order in which they can be created.
std::vector<const CheckedTable*> AllTables();
// "CREATE INDEX ..."
const std::vector<std::string>& Indexes();

std::vector<SqlValue> RowOf(const JobRecord& job);
std::vector<SqlValue> RowOf(const AttemptRecord& attempt);
// Throw CorruptDatabase.
JobRecord JobOf(const SqlRow& row);
AttemptRecord AttemptOf(const SqlRow& row);

}  // namespace renzan::cluster::store
