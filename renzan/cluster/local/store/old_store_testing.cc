#include "renzan/cluster/local/store/old_store_testing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "renzan/cluster/local/store/old_tables.h"
#include "renzan/cluster/local/store/store.h"
#include "renzan/cluster/local/store/store_tables.h"
#include "renzan/cluster/spec/facts_json.h"

namespace renzan::cluster::local {

std::vector<SqlValue> RowOfV10(const JobRecord& job) {
  return {job.id,
          job.name,
          job.queue,
          job.spec,
          job.source,
          job.submit_dir,
          job.user,
          int64_t{job.uid},
          int64_t{job.gid},
          int64_t{job.priority},
          int64_t{job.min_workers},
          int64_t{job.max_workers},
          job.cpu_millis,
          job.memory_mib,
          job.gpus,
          std::string(NameOf(job.state)),
          job.submitted,
          job.eligible_at,
          int64_t{job.attempts},
          int64_t{job.failures},
          int64_t{job.preemptions},
          int64_t{job.requeues},
          job.run_ms,
          job.last_resize,
          int64_t{job.cancel_requested},
          ToSql(job.first_started),
          ToSql(job.ended),
          job.exit_code ? SqlValue(int64_t{*job.exit_code}) : SqlValue(),
          job.message,
          job.manifest};
}

void PutOldJob(Database& database, int64_t version, const JobRecord& job, int64_t attempts,
               int64_t events) {
  if (version >= 11) {
    std::vector<SqlValue> row = store::RowOf(job, events);
    row.insert(row.begin() + store::kSpecV11, {job.spec, job.manifest});
    return store::JobsV11().Put(database, row);
  }
  store::JobsV10().Put(database, RowOfV10(job));
  store::RowCountsV10().Put(database, {job.id, attempts, events, int64_t{1},
                                       int64_t{job.measured.checkpoint_ms.has_value()}});
  if (job.attempt) store::Attempts().Put(database, store::RowOf(*job.attempt));
  if (job.measured.checkpoint_ms)
    store::MeasuredTimesV10().Put(
        database, {job.id, ToSql(job.measured.checkpoint_ms), ToSql(job.measured.restart_ms),
                   ToSql(job.measured.killed_after_ms)});
  const auto print = [](const NamedPlacement& placement) {
    return spec::PlacementToJson(placement).dump();
  };
  if (version >= 4 && !job.reservation.empty())
    store::ReservationsV10().Put(database, {job.id, print(job.reservation)});
  if (version >= 5 && job.run_time.back() > 0 && !job.ended)
    store::PredictedRunTimesV10().Put(
        database, {job.id, job.run_time[0], job.run_time[1], job.run_time[2], job.run_time[3],
                   job.run_time[4]});
  if (version >= 7 && job.reservation_yields > 0)
    store::ReservationYieldsV10().Put(database, {job.id, int64_t{job.reservation_yields}});
  if (version >= 8 && !job.held_by.empty()) store::HoldsV10().Put(database, {job.id, job.held_by});
  if (job.collection)
    store::CollectionsV10().Put(database, {job.id, std::string(NameOf(job.collection->becomes)),
                                           job.collection->ended, job.collection->text});
}

void MakeOlder(const std::string& path, int64_t version) {
  struct Kept {
    JobRecord job;
    int64_t attempts, events;
  };
  std::vector<Kept> jobs;
  {
    Store store(path);
    for (JobId id = 1; id <= store.LastJob(); ++id)
      if (auto job = store.FindJob(id))
        jobs.push_back({*job, static_cast<int64_t>(store.Attempts(id).size()),
                        static_cast<int64_t>(store.Events(id).size())});
  }
  Database database(path);
  database.Run("PRAGMA foreign_keys = OFF");
  database.Transact([&] {
    const std::vector<const CheckedTable*> old = store::TablesOf(version),
                                           now = store::TablesOf(store::kSchemaVersion);
    const auto is_in = [](const std::vector<const CheckedTable*>& tables,
                          const CheckedTable* table) {
      return std::find(tables.begin(), tables.end(), table) != tables.end();
    };
    for (const CheckedTable* table : now)
      if (!is_in(old, table)) database.Run("DROP TABLE " + table->name());
    const std::vector<std::string> there = store::SchemaOf(database);
    for (const std::string& definition : store::DefinitionsOf(version))
      if (std::find(there.begin(), there.end(), definition) == there.end())
        database.Run(definition);
    for (const auto& [job, attempts, events] : jobs)
      PutOldJob(database, version, job, attempts, events);
    store::Facts().Put(database, {std::string(store::kSchemaFact), version});
    database.Run(fmt::format("PRAGMA user_version = {}", version));
  });
}

}  // namespace renzan::cluster::local
