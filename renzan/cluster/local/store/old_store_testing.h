#pragma once

// For tests: databases as earlier versions would write them.

#include <string>
#include <vector>

#include "renzan/cluster/local/store/records.h"
#include "renzan/cluster/local/store/sqlite.h"

namespace renzan::cluster::local {

// Of the tables of jobs until version 10.
std::vector<SqlValue> RowOfV10(const JobRecord& job);

// A job with its attempt, as versions 3 to 11 would write it.
void PutOldJob(Database& database, int64_t version, const JobRecord& job, int64_t attempts,
               int64_t events);

// Gives a database the tables of that version, from 3 to 11.
void MakeOlder(const std::string& path, int64_t version);

}  // namespace renzan::cluster::local
